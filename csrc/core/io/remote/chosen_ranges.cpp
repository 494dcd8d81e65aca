// Looks up a row's range, and takes its bytes from the store.
#include "core/io/remote/chosen_ranges.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"

namespace headrace {

ChosenRanges::ChosenRanges(std::shared_ptr<ByteStore> store, std::span<const int64_t> rows,
                           std::span<const RangeKey> keys)
    : store_(std::move(store)) {
  if (rows.size() != keys.size()) throw std::out_of_range("the rows and the ranges differ in number");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] == INT64_MAX) throw std::out_of_range("a row is no number of a sample");
    keys_[rows[i]] = keys[i];
    size_ = std::max(size_, rows[i] + 1);
  }
}

std::span<const uint8_t> ChosenRanges::read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const {
  const auto found = keys_.find(row);
  if (found == keys_.end()) throw Error(Stage::kRead, "the table of this batch does not have the sample");
  SharedBytes bytes = store_->take(found->second, cancelled);
  buffer.hold(bytes);
  return *bytes;
}

}  // namespace headrace
