// Has the kernel read bytes into memory in the background, and tests whether they are in memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "core/base/platform/platform.h"

namespace headrace {

/// The page of memory that contains an address.
inline uintptr_t page_of(uintptr_t address) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return address / page * page;
}

/// Requests the pages of mapped memory. Advice: errors have no effect.
inline void request_memory(const uint8_t* data, size_t bytes) noexcept {
  const auto first = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = page_of(first);
  ::posix_madvise(reinterpret_cast<void*>(begin), first + bytes - begin, POSIX_MADV_WILLNEED);
}

/// Requests a part of an open file; nothing where the system has no such call. Advice: errors have no effect.
inline void request_file(int file, uint64_t offset, uint64_t length) noexcept {
#if HEADRACE_LINUX
  ::posix_fadvise(file, static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_WILLNEED);
#else
  (void)file, (void)offset, (void)length;
#endif
}

/// Whether the page of a byte of mapped memory can be read without a disk. True where the system cannot say.
inline bool is_in_memory(const uint8_t* data) noexcept {
#if HEADRACE_LINUX
  unsigned char resident = 1;
  auto* const page = reinterpret_cast<void*>(page_of(reinterpret_cast<uintptr_t>(data)));
  return ::mincore(page, 1, &resident) != 0 || (resident & 1) != 0;
#else
  (void)data;
  return true;
#endif
}

}  // namespace headrace
