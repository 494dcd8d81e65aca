// A few samples that are ranges of objects on other machines, with row numbers of any size.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/io/remote/byte_store.h"
#include "core/io/source/byte_ranges.h"

namespace headrace {

/// A table that has only the rows that it was made with. It owns everything it needs.
class ChosenRanges final : public ByteRanges {
 public:
  /// `keys[i]` is the range of row `rows[i]`. Throws std::out_of_range if they differ in number, or for a negative row.
  ChosenRanges(std::shared_ptr<ByteStore> store, std::span<const int64_t> rows, std::span<const RangeKey> keys);

  /// One more than the largest row.
  int64_t size() const override { return size_; }
  /// Also throws Error(kRead) for a row that the table does not have.
  std::span<const uint8_t> read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const override;

 private:
  const std::shared_ptr<ByteStore> store_;
  std::unordered_map<int64_t, RangeKey> keys_;
  int64_t size_ = 0;
};

}  // namespace headrace
