// A cache of bytes of local files, in memory and in a folder on a faster disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/fork_guard.h"
#include "core/io/remote/byte_store.h"
#include "core/io/source/file_state.h"

namespace headrace {

/// A part of a file in a certain state.
struct FilePart {
  const char* path = nullptr;  // where the file has that state
  FileState state;
  uint64_t offset = 0, length = 0;
  uint64_t mark = 0;  // hash of what was compared with the file before the part was kept; 0: nothing was
};

/// Any thread. In a forked child nothing is found and nothing is kept: the locks may be held for ever.
///
/// A part is known by its file's device and inode, size, time of modification and time of change. Where these numbers
/// do not last, also by the path with links resolved: on disk always, in memory where inode numbers are not stable.
class LocalCache {
 public:
  /// `memory`: bytes that may stay in memory, 0: none. When it is full, nothing is added or evicted. `folder`: holds
  /// entries as files, and must exist; "": none.
  LocalCache(size_t memory, std::string folder);

  /// The bytes of a part, if they are kept; valid until the next use of `buffer`.
  std::optional<std::span<const uint8_t>> find(const FilePart& part, ReadBuffer& buffer);
  /// Keeps what was read, if there is room. Does nothing for a file that was written so recently that a later change of
  /// the same size could leave its state the same.
  void keep(const FilePart& part, std::span<const uint8_t> bytes);
  /// Whether a part is in memory. Does not look on disk.
  bool holds(const FilePart& part) const;

  StoreCounts counts() const { return store_.counts(); }
  /// Bytes that were written to the folder since the last call.
  uint64_t take_written() { return written_.exchange(0); }
  /// errno of the first write that failed; nothing is written after it. 0: none failed.
  int write_error() const { return write_error_.load(); }

 private:
  std::string entry(const std::string& name) const;
  void write(const std::string& name, std::span<const uint8_t> bytes);

  ByteStore store_;
  const std::string folder_;
  const ForkGuard fork_;
  std::atomic<uint64_t> written_{0};
  std::atomic<int> write_error_{0};
};

}  // namespace headrace
