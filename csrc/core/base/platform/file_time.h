// When a file's bytes were modified (mtime), and when its bytes or metadata last changed (ctime).
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace headrace {

/// Nanoseconds since 1970. macOS has its own name for the field.
inline int64_t modified_ns(const struct stat& info) {
#ifdef __APPLE__
  const struct timespec& time = info.st_mtimespec;
#else
  const struct timespec& time = info.st_mtim;
#endif
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// The same for the last change of its bytes, times, owner or links. No program can set it.
inline int64_t changed_ns(const struct stat& info) {
#ifdef __APPLE__
  const struct timespec& time = info.st_ctimespec;
#else
  const struct timespec& time = info.st_ctim;
#endif
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace headrace
