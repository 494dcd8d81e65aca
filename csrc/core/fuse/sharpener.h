// PIL.ImageEnhance.Sharpness: blends an image with its smooth version, in place.
#pragma once

#include "core/base/aligned_array.h"
#include "core/base/geometry.h"
#include "core/kernels/effects/effect_loops.h"
#include "core/plan/plan.h"

namespace headrace {

/// Each worker has one, which reuses its memory.
class Sharpener {
 public:
  /// `pixels`: RGBX rows without gaps. The outermost pixels stay as they are; so does an image of two rows or columns.
  void run(uint8_t* pixels, Size size, float factor, const EffectLoops& loops);
  /// torchvision's Sharpness of a byte tensor. Version 1 blends the outermost pixels with themselves.
  void run(uint8_t* pixels, Size size, const Effect& effect, const EffectLoops& loops);

 private:
  template <class Sharpen>
  void each_row(uint8_t* pixels, Size size, Sharpen sharpen);

  AlignedArray<uint8_t> rows_;  // copies of two rows that have been overwritten, or will be
};

}  // namespace headrace
