// Arrays in memory or in mapped files, one row per sample, with any strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/io/source/blob.h"

namespace headrace {

/// One array. Row i begins at data + i * stride; gathered, it has `row_bytes` bytes in C order. A row consists of runs
/// of `run_bytes` adjacent bytes; without `axes` it is one run.
struct Column {
  struct Axis {
    int64_t count = 0;
    ptrdiff_t stride = 0;  // bytes; may be negative
  };

  const uint8_t* data = nullptr;
  ptrdiff_t stride = 0;
  size_t row_bytes = 0, run_bytes = 0;
  std::vector<Axis> axes;  // outermost first

  /// A column of rows with these axes, each element of `item_bytes`. Adjacent axes without gaps become runs.
  static Column of(const uint8_t* data, ptrdiff_t stride, const std::vector<Axis>& axes, size_t item_bytes);

  /// Copies a row to `to`, which has `row_bytes` bytes. `past_caches`: writes past the caches, which pays if
  /// the batch is larger than they are. The row must exist: not checked.
  void copy_row(int64_t row, uint8_t* to, bool past_caches) const;
};

/// A table whose row i is row i of each column.
class Columns final : public BlobTable {
 public:
  /// The columns' memory must outlive the table; each has `count` rows.
  Columns(std::vector<Column> columns, int64_t count) : columns_(std::move(columns)), count_(count) {}

  int64_t size() const override { return count_; }
  Blob at(int64_t row) const override {
    Blob blob;
    blob.columns = this;
    blob.row = row;
    return blob;
  }
  const std::vector<Column>& columns() const { return columns_; }

 private:
  const std::vector<Column> columns_;
  const int64_t count_;
};

}  // namespace headrace
