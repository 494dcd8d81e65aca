// PIL.ImageFilter.GaussianBlur: three box blurs of the rows, then three of the columns.
#pragma once

#include "core/base/aligned_array.h"
#include "core/base/geometry.h"
#include "core/kernels/effects/effect_loops.h"

namespace headrace {

/// Each worker has one, which reuses its memory.
class BoxBlur {
 public:
  /// `pixels`: RGBX rows without gaps, changed in place. The box covers `edge` pixels on each side, which have the
  /// weight `weight`; the next pixel on each side has the weight `rest`, in units of 2^-24. Pixels outside the image
  /// are those at its border.
  void run(uint8_t* pixels, Size size, int edge, uint32_t weight, uint32_t rest, const EffectLoops& loops);

 private:
  AlignedArray<uint8_t> other_;        // a row with its ends repeated, or an image
  AlignedArray<const uint8_t*> rows_;  // the rows that an output row is made of
};

}  // namespace headrace
