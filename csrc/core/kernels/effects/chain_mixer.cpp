// AugMix of timm and torchvision: several changed copies of an image, mixed with it.
#include "core/kernels/effects/chain_mixer.h"

#include <cstring>

namespace headrace {

void ChainMixer::begin(const ChainMix& mix, const uint8_t* image, size_t bytes) {
  mix_ = &mix;
  bytes_ = bytes;
  added_ = 0;
  image_.resize(bytes);
  std::memcpy(image_.data(), image, bytes);
  if (mix.blended) {
    blend_.resize(bytes);
    std::memcpy(blend_.data(), image, bytes);
  } else {
    sums_.resize(bytes);
    std::memset(sums_.data(), 0, bytes * sizeof(float));
  }
}

void ChainMixer::add(uint8_t* changed, const EffectLoops& loops) {
  // The image's term comes first: a sum that begins with 0 is the product itself.
  if (mix_->summed && added_ == 0) loops.add_weighted(image_.data(), bytes_, mix_->factor, sums_.data());
  const float weight = mix_->chains[added_++].weight;
  if (mix_->blended) {
    loops.blend(changed, bytes_, weight, blend_.data());
  } else {
    loops.add_weighted(changed, bytes_, weight, sums_.data());
  }
  std::memcpy(changed, image_.data(), bytes_);
}

void ChainMixer::finish(uint8_t* image, const EffectLoops& loops) {
  if (mix_->blended) {
    std::memcpy(image, blend_.data(), bytes_);
  } else {
    loops.blend_sums(sums_.data(), bytes_, mix_->summed ? 1.0f : mix_->factor, image);
  }
}

}  // namespace headrace
