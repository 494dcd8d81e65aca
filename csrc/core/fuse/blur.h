// torchvision's GaussianBlur of a PIL image: a convolution in float32, its terms in the order of torch's kernel.
#pragma once

#include <span>

#include "core/base/aligned_array.h"
#include "core/base/geometry.h"
#include "core/kernels/effects/effect_loops.h"

namespace headrace {

/// The weights of a row and of a column of the kernel, whose own weights are their products.
struct BlurWeights {
  std::span<const float> row, column;
};

/// Each worker has one, which reuses its memory.
class Blur {
 public:
  /// Blurs an image, RGBX rows without gaps, in place. Along each axis it must have more pixels than half the kernel.
  void run(uint8_t* pixels, Size size, const BlurWeights& weights, const EffectLoops& loops);
  /// The same without rounding to bytes: writes four floats per pixel to `to`.
  void run(const uint8_t* pixels, Size size, const BlurWeights& weights, const EffectLoops& loops, float* to);

 private:
  void prepare(const uint8_t* pixels, Size size, const BlurWeights& weights);
  const float* row(int y, const EffectLoops& loops);

  Size size_;
  int taps_ = 0, row_count_ = 0;
  size_t stride_ = 0;           // floats from row to row of source_
  AlignedArray<float> source_;  // the image with its borders mirrored left and right
  AlignedArray<float> kernel_, out_;
  AlignedArray<const float*> rows_;  // rows of source_ under the kernel
};

}  // namespace headrace
