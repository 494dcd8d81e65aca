// Advice about mapped memory: huge pages, and pages that may go.
#pragma once

#include <cstddef>

#include "core/base/platform/platform.h"

#if HEADRACE_LINUX
#include <sys/mman.h>
#endif

namespace headrace {

/// Has mapped memory lie on huge pages where the system grants them. Advice only: without them, or where the system has
/// no such call, small pages are used.
inline void prefer_huge_pages(void* memory, size_t bytes) noexcept {
#if HEADRACE_LINUX
  ::madvise(memory, bytes, MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

/// Lets the system take the pages of mapped memory whenever it needs them, until they are written to; their contents
/// are unspecified from now on. False where that cannot be had.
inline bool let_pages_go(void* memory, size_t bytes) noexcept {
#if HEADRACE_LINUX
  return ::madvise(memory, bytes, MADV_FREE) == 0;
#else
  (void)memory, (void)bytes;
  return false;
#endif
}

}  // namespace headrace
