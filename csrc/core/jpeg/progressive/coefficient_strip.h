// The coefficients of some rows of MCUs, while the scans of a file fill them in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/aligned_array.h"

namespace headrace {

/// The blocks of one component, counted from the top left of the image.
struct BlockGrid {
  int blocks_x = 1, blocks_y = 1;         // of an MCU
  int across = 0, down = 0;               // blocks that hold pixels
  int padded = 0;                         // across, in whole MCUs
  int first_column = 0, last_column = 0;  // the window: blocks whose coefficients are wanted
};

/// The lines of one component's blocks in a strip. Lines are counted from the top of the image.
class StripLines {
 public:
  /// Begins an image. At most `lines` lines at once. Throws std::bad_alloc.
  void begin(const BlockGrid& grid, int lines);
  /// Moves to lines [first, first + count), all zero. Coefficients are kept only if `wanted`.
  void clear(int first, int count, bool wanted);

  /// The masks of this line's blocks, see Note [masks].
  uint64_t* masks(int line) { return masks_.data() + static_cast<size_t>(line - first_) * width_; }
  /// The window's first block of this line; nullptr: no coefficients are wanted. Aligned to cache lines.
  int16_t* coefficients(int line) {
    return wanted_ ? coefficients_.data() + static_cast<size_t>(line - first_) * stride_ : nullptr;
  }
  static size_t bytes_of_line(const BlockGrid& grid);

 private:
  AlignedArray<uint64_t> masks_;
  AlignedArray<int16_t> coefficients_;
  size_t width_ = 0, stride_ = 0;  // blocks; values
  int first_ = 0;
  bool wanted_ = false;
};

}  // namespace headrace
