// Advice about mapped memory: huge pages, and pages that may be reclaimed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/platform/platform.h"

#if HEADRACE_LINUX
#include <sys/mman.h>
#endif

namespace headrace {

/// Requests huge pages for mapped memory where the system grants them. Advice only: without them, or where the system
/// has no such call, small pages are used.
inline void prefer_huge_pages(void* memory, size_t bytes) noexcept {
#if HEADRACE_LINUX
  ::madvise(memory, bytes, MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

/// Writes to each page of a thread's own part of mapped memory whose contents do not matter, so that later writes find
/// the pages in place.
inline void touch_pages(uint8_t* memory, size_t bytes) noexcept {
  constexpr size_t kPage = 4096;
  volatile uint8_t* const pages = memory;
  for (size_t at = 0; at < bytes; at += kPage) pages[at] = 0;
  if (bytes > 0) pages[bytes - 1] = 0;
}

/// Lets the system reclaim the pages of mapped memory whenever it needs them, until they are written to; their contents
/// are unspecified after this call. False where that is not possible.
inline bool let_pages_go(void* memory, size_t bytes) noexcept {
#if HEADRACE_LINUX
  return ::madvise(memory, bytes, MADV_FREE) == 0;
#else
  (void)memory, (void)bytes;
  return false;
#endif
}

}  // namespace headrace
