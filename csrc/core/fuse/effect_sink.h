// Applies a stage's effects: collects the rows of an image, changes their values, passes them on.
#pragma once

#include <span>

#include "core/base/aligned_array.h"
#include "core/base/geometry.h"
#include "core/fuse/blur.h"
#include "core/fuse/sharpener.h"
#include "core/kernels/effects/box_blur.h"
#include "core/kernels/effects/chain_mixer.h"
#include "core/kernels/resize/kernels.h"
#include "core/plan/plan.h"

namespace headrace {

/// The tables of a run of effects that map each byte by itself, composed into one. 256 entries per channel.
class ByteTables {
 public:
  void reset();
  bool identity() const { return identity_; }
  const uint8_t* data() const { return entries_; }
  /// Composes with an effect that needs no histogram. `mean`: for Contrast.
  void then(const Effect& effect, int mean);
  /// Composes with torchvision's Contrast of a byte tensor.
  void then_tensor_contrast(const Effect& effect, float mean);
  /// Composes with an Autocontrast or Equalize of an image that has these histograms before the tables.
  void then(const Effect& effect, const int32_t* histograms);

 private:
  bool identity_ = true;
  alignas(64) uint8_t entries_[3 * 256];
};

class EffectSink final : public RowSink {
 public:
  explicit EffectSink(const Kernels& kernels)
      : loops_(*kernels.effects), run_warp_(kernels.run_warp), run_tensor_warp_(kernels.run_tensor_warp) {}
  /// Begins an image of size `image`. The rows of `have`, a part of it, are pushed; those of `want`, a part of the
  /// changed image, go to `next` after the last one. Only a single warp may have less than all of the image.
  /// `effects`, a stage's of `plan`, and the plan must live until then.
  void begin(std::span<const Effect> effects, const Plan& plan, Size image, Box have, Box want, RowSink& next);
  void push(const uint8_t* rows, size_t stride, int count) override;

 private:
  uint8_t* at(int x, int y) { return image_.data() + (size_t(y) * size_t(size_.width) + size_t(x)) * kPixelBytes; }
  void retouch(std::span<const Effect> effects);
  void mix(const ChainMix& mix);
  void warp(const Warp& warp);
  void warp(const TensorWarp& warp);
  float tensor_mean(const Effect& effect, size_t pixels);
  void make_real();

  const EffectLoops& loops_;
  RunWarp run_warp_;
  RunTensorWarp run_tensor_warp_;
  std::span<const Effect> effects_;
  const Plan* plan_ = nullptr;
  RowSink* next_ = nullptr;
  Size size_;        // of image_
  Box have_, want_;  // pushed, and passed on
  int collected_ = 0;
  AlignedArray<uint8_t> image_;  // rows without gaps
  AlignedArray<uint8_t> warped_;
  Blur blur_;
  Sharpener sharpener_;
  BoxBlur box_blur_;
  ChainMixer mixer_;
  ByteTables pending_;           // effects that are not applied to image_ yet
  int32_t histograms_[3 * 256];  // of image_, if counted_
  bool counted_ = false;
};

}  // namespace headrace
