// The samples of one component that the next rows of pixels need: those of a row of MCUs, and the last ones above it.
#pragma once

#include <cstdint>

#include "core/base/aligned_array.h"
#include "core/jpeg/idct/block_loops.h"
#include "core/jpeg/planes/planar_image.h"
#include "core/jpeg/sequential/jpeg_session.h"

namespace headrace {

/// Rows are counted from the top of the component. A row group of the image is the rows of pixels that one row of
/// samples of the coarsest component covers.
class ComponentRows {
 public:
  static constexpr int kGroups = 8;       // row groups in a row of MCUs
  static constexpr int kGroupsAbove = 2;  // that are kept: one not yet pushed, and the one above it

  /// Begins an image. `blocks_x` and `blocks_y`: of an MCU; `mcus`: columns of them. Throws std::bad_alloc.
  void begin(const JQUANT_TBL& quant, const Plane& plane, int blocks_x, int blocks_y, int mcus);
  /// Moves to this row of MCUs; its samples are unspecified until invert() has made them.
  void advance(int mcu_row);
  /// Inverts row `line` of blocks of `mcus` MCUs, the first of them in column `mcu` of the window.
  void invert(const BlockLoops& loops, const int16_t* coefficients, int mcu, int mcus, int line);
  /// Repeats the samples at the sides of the image outwards.
  void repeat_sides(bool left, bool right);

  /// The values of `count` pixels from column `x` of the pixels' row `y`, with kSampleSlack. May use `scratch`.
  const uint8_t* upsampled(const BlockLoops& loops, int x, int y, int count, uint8_t* scratch) const;

  /// The samples of row `y` of the current row of MCUs, from the window's first on.
  const uint8_t* row(int y) const { return const_cast<ComponentRows*>(this)->row(y); }

  int blocks_x() const { return blocks_x_; }
  int blocks_y() const { return blocks_y_; }

 private:
  uint8_t* row(int y) { return memory_.data() + kSampleSlack + static_cast<size_t>(y - first_) * stride_; }

  alignas(kCacheLine) uint16_t quant_[kBlockValues] = {};
  Plane plane_;  // its data, stride and y0 are not used
  int blocks_x_ = 1, blocks_y_ = 1;
  int first_ = 0;  // row in memory
  size_t stride_ = 0;
  AlignedArray<uint8_t> memory_;
};

}  // namespace headrace
