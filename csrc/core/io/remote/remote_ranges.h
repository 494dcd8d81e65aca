// Samples that are ranges of objects on other machines: from memory, from a cache on disk, or fetched.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/remote/byte_store.h"
#include "core/io/source/byte_ranges.h"

namespace headrace {

/// A table whose row i is `lengths[i]` bytes, starting at `offsets[i]`, of object number `object_of[i]` of the table.
class RemoteRanges final : public ByteRanges {
 public:
  /// `objects`: the number of each object in the store. `cached`: beginning of the paths of each object's entries in a
  /// cache on disk; empty: not cached. `marks`: those of the ranges, see RangeKey; empty: all are 0. The spans have the
  /// same length, and their memory must outlive the table. Throws std::out_of_range if they do not fit.
  RemoteRanges(std::shared_ptr<ByteStore> store, std::vector<uint64_t> objects, std::vector<std::string> cached,
               std::span<const uint32_t> object_of, std::span<const uint64_t> offsets,
               std::span<const uint64_t> lengths, std::span<const uint64_t> marks = {});

  int64_t size() const override { return static_cast<int64_t>(object_of_.size()); }
  std::span<const uint8_t> read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const override;

  /// The rows that the caller has to fetch so that reads do not wait. Any thread.
  std::vector<int64_t> want(std::span<const int64_t> rows) const;
  /// Whether a read of the row would not wait. Any thread.
  bool has(int64_t row) const;

 private:
  RangeKey key(int64_t row) const;
  std::string path(int64_t row) const;

  const std::shared_ptr<ByteStore> store_;
  const std::vector<uint64_t> objects_;
  const std::vector<std::string> cached_;
  const std::span<const uint32_t> object_of_;
  const std::span<const uint64_t> offsets_, lengths_, marks_;
};

}  // namespace headrace
