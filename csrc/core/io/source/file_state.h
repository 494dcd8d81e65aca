// A file's metadata that shows whether it has changed, and which file it is.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>

#include "core/base/platform/file_time.h"

namespace headrace {

/// A file's size and time when the ranges in it were found.
struct FileStamp {
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970
  bool operator==(const FileStamp&) const = default;
};

/// One file in one state. Programs that set times, such as tar, give many files equal stamps.
struct FileState {
  FileStamp stamp;
  uint64_t device = 0, inode = 0;
  int64_t changed_ns = 0;  // since 1970; see changed_ns()
  bool operator==(const FileState&) const = default;
};

/// A file's state by the result of stat(); nullopt for a device, a pipe or a folder.
inline std::optional<FileState> state_in(const struct stat& info) noexcept {
  if (!S_ISREG(info.st_mode)) return {};
  return FileState{{static_cast<uint64_t>(info.st_size), modified_ns(info)},
                   static_cast<uint64_t>(info.st_dev),
                   static_cast<uint64_t>(info.st_ino),
                   changed_ns(info)};
}

}  // namespace headrace
