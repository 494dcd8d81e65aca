// Whether a file system's inode numbers and device number stay the same over time.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "core/base/platform/platform.h"

#if HEADRACE_LINUX
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#endif

namespace headrace {

/// Whether a file system of this kind, as statfs() names it, gives a file one inode for as long as the file exists.
/// FUSE, FAT and SMB number the files that are in use, so a number may later be another file's.
inline bool has_lasting_inodes(int64_t kind) noexcept {
  constexpr int64_t kFuse = 0x65735546, kFat = 0x4D44, kExfat = 0x2011BAB0, kSmb = 0x517B, kCifs = 0xFF534D42,
                    kSmb2 = 0xFE534D42;
  const int64_t low = kind & 0xFFFFFFFF;  // the field is signed on some machines
  return low != kFuse && low != kFat && low != kExfat && low != kSmb && low != kCifs && low != kSmb2;
}

/// The same for the file system that holds a file; `device`: the one that stat() reported. False if unknown.
inline bool has_lasting_inode(const char* path, uint64_t device) noexcept {
#if HEADRACE_LINUX
  thread_local uint64_t last = 0;  // most files of a thread are on one device
  thread_local bool lasting = false, known = false;
  if (known && last == device) return lasting;
  struct statfs info{};
  if (::statfs(path, &info) != 0) return false;
  last = device;
  known = true;
  return lasting = has_lasting_inodes(static_cast<int64_t>(info.f_type));
#else
  (void)path, (void)device;
  return false;
#endif
}

/// A device's number, if it is that of a disk; 0 for one that the system made up when the file system was mounted.
inline uint64_t lasting_device(uint64_t device) noexcept {
#if HEADRACE_LINUX
  return major(static_cast<dev_t>(device)) == 0 ? 0 : device;
#else
  (void)device;
  return 0;
#endif
}

}  // namespace headrace
