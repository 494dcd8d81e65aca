// Scratch rows, aligned to cache lines and followed by kRowSlack. Their memory is reused between samples.
#pragma once

#include "core/base/aligned_array.h"
#include "core/base/geometry.h"

namespace headrace {

class RowBuffer {
 public:
  /// Makes room for `rows` rows of `row_bytes` bytes. Their contents are unspecified. Throws std::bad_alloc.
  void reset(int rows, int row_bytes) {
    stride_ = (size_t(row_bytes) + kRowSlack + kCacheLine - 1) / kCacheLine * kCacheLine;
    bytes_.resize(stride_ * size_t(rows));
  }
  uint8_t* row(int index) { return bytes_.data() + stride_ * size_t(index); }
  size_t stride() const { return stride_; }

 private:
  AlignedArray<uint8_t> bytes_;
  size_t stride_ = 0;
};

}  // namespace headrace
