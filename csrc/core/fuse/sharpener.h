// PIL.ImageEnhance.Sharpness: blends an image with its smooth version, in place.
#pragma once

#include "core/base/aligned_array.h"
#include "core/base/geometry.h"
#include "core/effects/effects.h"

namespace headrace {

/// Each worker has one, which reuses its memory.
class Sharpener {
 public:
  /// `pixels`: RGBX rows without gaps. The outermost pixels stay as they are; so does an image of two rows or columns.
  void run(uint8_t* pixels, Size size, float factor, const EffectLoops& loops);

 private:
  AlignedArray<uint8_t> rows_;  // copies of two rows that have been overwritten, or will be
};

}  // namespace headrace
