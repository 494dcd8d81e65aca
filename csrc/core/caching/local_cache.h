// Bytes of local files that stay in memory, and in a folder of a faster disk, after they were read.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/fork_guard.h"
#include "core/remote/byte_store.h"
#include "core/source/file_ranges.h"

namespace headrace {

/// A part of a file in a certain state.
struct FilePart {
  const char* path = nullptr;
  FileStamp stamp;
  uint64_t offset = 0, length = 0;
};

/// Any thread. In a forked child nothing is found and nothing is kept: the locks may be held for ever.
class LocalCache {
 public:
  /// `memory`: bytes that stay in memory, 0: none. While it is full, what is in it stays. `folder`: where entries lie
  /// as files, which must exist; "": none.
  LocalCache(size_t memory, std::string folder);

  /// The bytes of a part, if they are kept; valid until the next use of `buffer`. `key`: names the part in memory;
  /// a file that changed has another one.
  std::optional<std::span<const uint8_t>> find(const RangeKey& key, const FilePart& part, ReadBuffer& buffer);
  /// Keeps what was read, if there is room. Not of a file that was modified within the last two seconds: a later
  /// change of the same size could have the same time of modification.
  void keep(const RangeKey& key, const FilePart& part, std::span<const uint8_t> bytes);
  /// Whether a part is in memory. Does not look on the disk.
  bool holds(const RangeKey& key) const { return !fork_.forked() && store_.has(key); }

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
