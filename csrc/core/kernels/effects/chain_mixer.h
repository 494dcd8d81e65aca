// AugMix of timm and torchvision: several changed copies of an image, mixed with it.
#pragma once

#include "core/base/aligned_array.h"
#include "core/kernels/effects/effect_loops.h"
#include "core/plan/plan.h"

namespace headrace {

/// Each worker has one, which reuses its memory. Images are RGBX bytes without gaps, all of one size.
class ChainMixer {
 public:
  /// `image`, of `bytes` bytes, is copied. `mix` must live until finish().
  void begin(const ChainMix& mix, const uint8_t* image, size_t bytes);
  /// Adds `changed`, a copy of the image changed by the next chain, to the mix, and resets it to the original image.
  void add(uint8_t* changed, const EffectLoops& loops);
  /// Writes the result.
  void finish(uint8_t* image, const EffectLoops& loops);

 private:
  const ChainMix* mix_ = nullptr;
  size_t bytes_ = 0, added_ = 0;
  AlignedArray<uint8_t> image_;
  AlignedArray<uint8_t> blend_;  // result of the chains so far, if ChainMix::blended
  AlignedArray<float> sums_;     // otherwise
};

}  // namespace headrace
