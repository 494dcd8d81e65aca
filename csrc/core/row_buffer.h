// Scratch rows: cache-line aligned, with the slack that vector loads need, memory kept between samples.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>

#include "geometry.h"

namespace headrace {

class RowBuffer {
 public:
  /// Makes room for `rows` rows of `row_bytes` bytes; what the buffer held is lost.
  void reset(int rows, int row_bytes) {
    stride_ = (size_t(row_bytes) + kRowSlack + kAlign - 1) / kAlign * kAlign;
    const size_t bytes = stride_ * size_t(rows);
    if (bytes <= capacity_) return;
    memory_.reset();  // first: the old and the new one need not be held together
    capacity_ = 0;
    memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(kAlign, bytes)));
    if (!memory_) throw std::bad_alloc();
    capacity_ = bytes;
  }
  uint8_t* row(int index) { return memory_.get() + stride_ * size_t(index); }
  size_t stride() const { return stride_; }

 private:
  static constexpr size_t kAlign = 64;
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  std::unique_ptr<uint8_t, Free> memory_;
  size_t capacity_ = 0, stride_ = 0;
};

}  // namespace headrace
