// Applies a stage's effects: collects the rows of an image, changes their values, passes them on.
#include "core/fuse/effect_sink.h"

#include <array>
#include <cstring>
#include <utility>

#include "core/kernels/effects/effect_math.h"
#include "core/kernels/effects/tensor_math.h"
#include "core/kernels/warp/warp_math.h"

namespace headrace {

namespace {

/// torch's float32 sum of the first bytes of many pixels, by vectors of `lanes`. Each lane of four vectors has a sum of
/// its own, which is exact up to 2^24; these are added vector by vector, then lane by lane.
float tensor_sum(const uint8_t* pixels, size_t count, int lanes) {
  constexpr size_t kAtOnce = 4;
  const auto wide = static_cast<size_t>(lanes), block = kAtOnce * wide, blocks = count / block;
  std::array<int32_t, kAtOnce * kMostLanes> exact{};
  for (size_t i = 0; i < blocks * block; i += block) {
    for (size_t k = 0; k < block; ++k) exact[k] += pixels[(i + k) * kPixelBytes];
  }
  std::array<float, kMostLanes> sums{};
  for (size_t lane = 0; lane < wide; ++lane) sums[lane] = static_cast<float>(exact[lane]);
  const size_t vectors_end = count / wide * wide;
  for (size_t i = blocks * block; i < vectors_end; ++i) sums[i % wide] += pixels[i * kPixelBytes];
  for (size_t k = wide; k < block; ++k) sums[k % wide] += static_cast<float>(exact[k]);
  float sum = 0;
  for (size_t i = vectors_end; i < count; ++i) sum += pixels[i * kPixelBytes];
  for (size_t lane = 0; lane < wide; ++lane) sum += sums[lane];
  return sum;
}

}  // namespace

void ByteTables::reset() {
  for (int i = 0; i < 3 * 256; ++i) entries_[i] = static_cast<uint8_t>(i);
  identity_ = true;
}

void ByteTables::then(const Effect& effect, int mean) {
  uint8_t next[256];
  for (int i = 0; i < 256; ++i) next[i] = mapped(effect, i, mean);
  for (uint8_t& entry : entries_) entry = next[entry];
  identity_ = false;
}

void ByteTables::then_tensor_contrast(const Effect& effect, float mean) {
  const bool once = (effect.amount & kFused) != 0;
  for (uint8_t& entry : entries_) {
    entry = static_cast<uint8_t>(once ? tensor_blended<true>(entry, mean, effect.factor, effect.rest)
                                      : tensor_blended<false>(entry, mean, effect.factor, effect.rest));
  }
  identity_ = false;
}

void ByteTables::then(const Effect& effect, const int32_t* histograms) {
  for (int c = 0; c < 3; ++c) {
    uint8_t* entries = entries_ + c * 256;
    int32_t seen[256] = {};  // the histogram after the tables
    for (int i = 0; i < 256; ++i) seen[entries[i]] += histograms[c * 256 + i];
    uint8_t next[256];
    if (effect.kind == Effect::Kind::kEqualize) {
      equalize_table(seen, next);
    } else if (effect.kind == Effect::Kind::kTensorAutocontrast) {
      tensor_autocontrast_table(seen, (effect.amount & kFirstVersion) != 0, next);
    } else {
      autocontrast_table(seen, next);
    }
    for (int i = 0; i < 256; ++i) entries[i] = next[entries[i]];
  }
  identity_ = false;
}

void EffectSink::begin(std::span<const Effect> effects, const Plan& plan, Size image, Box have, Box want,
                       RowSink& next) {
  effects_ = effects;
  plan_ = &plan;
  size_ = image;
  have_ = have;
  want_ = want;
  next_ = &next;
  collected_ = 0;
  counted_ = false;
  image_.resize(size_t(image.width) * size_t(image.height) * kPixelBytes + kRowSlack);
}

void EffectSink::push(const uint8_t* rows, size_t stride, int count) {
  for (int i = 0; i < count; ++i, ++collected_) {
    std::memcpy(at(have_.x, have_.y + collected_), rows + size_t(i) * stride, size_t(have_.width) * kPixelBytes);
  }
  if (collected_ < have_.height) return;
  retouch(effects_);
  next_->push(at(want_.x, want_.y), size_t(size_.width) * kPixelBytes, want_.height);
}

void EffectSink::retouch(std::span<const Effect> effects) {
  pending_.reset();
  for (const Effect& effect : effects) {
    const size_t pixels = size_t(size_.width) * size_t(size_.height);
    if (!is_table(effect.kind)) {
      make_real();
      counted_ = false;
    }
    switch (effect.kind) {
      case Effect::Kind::kGray:
        loops_.gray(image_.data(), pixels);
        break;
      case Effect::Kind::kSaturation:
        loops_.change_saturation(image_.data(), pixels, effect.factor);
        break;
      case Effect::Kind::kHue:
        loops_.turn_hue(image_.data(), pixels, effect.amount);
        break;
      case Effect::Kind::kBlur: {
        const std::span<const float> weights = std::span(plan_->weights).subspan(static_cast<size_t>(effect.weights));
        const auto row = weights.first(static_cast<size_t>(effect.width));
        const auto column = weights.subspan(static_cast<size_t>(effect.width), static_cast<size_t>(effect.height));
        blur_.run(image_.data(), size_, {row, column}, loops_);
        break;
      }
      case Effect::Kind::kSharpness:
        sharpener_.run(image_.data(), size_, effect.factor, loops_);
        break;
      case Effect::Kind::kBoxBlur:
        box_blur_.run(image_.data(), size_, effect.amount, static_cast<uint32_t>(effect.width),
                      static_cast<uint32_t>(effect.height), loops_);
        break;
      case Effect::Kind::kPermute:
        loops_.permute(image_.data(), pixels, effect.amount);
        break;
      case Effect::Kind::kWarp:
        warp(plan_->warps[static_cast<size_t>(effect.amount)]);
        break;
      case Effect::Kind::kTensorSaturation:
        loops_.tensor_change_saturation(image_.data(), pixels, effect.factor, effect.rest,
                                        (effect.amount & kFused) != 0);
        break;
      case Effect::Kind::kTensorHue:
        loops_.tensor_turn_hue(image_.data(), pixels, effect.factor, (effect.amount & kFirstVersion) != 0);
        break;
      case Effect::Kind::kTensorSharpness:
        sharpener_.run(image_.data(), size_, effect, loops_);
        break;
      case Effect::Kind::kTensorWarp:
        warp(plan_->tensor_warps[static_cast<size_t>(effect.amount)]);
        break;
      case Effect::Kind::kTensorContrast:
        make_real();
        pending_.then_tensor_contrast(effect, tensor_mean(effect, pixels));
        break;
      case Effect::Kind::kMixChains:
        mix(plan_->chain_mixes[static_cast<size_t>(effect.amount)]);
        break;
      case Effect::Kind::kContrast:
        make_real();
        pending_.then(effect, rounded_mean(loops_.sum_of_luma(image_.data(), pixels), static_cast<int64_t>(pixels)));
        break;
      case Effect::Kind::kAutocontrast:
      case Effect::Kind::kTensorAutocontrast:
      case Effect::Kind::kEqualize:
        if (!counted_) {
          std::memset(histograms_, 0, sizeof(histograms_));
          loops_.add_to_histograms(image_.data(), pixels, histograms_);
          counted_ = true;
        }
        pending_.then(effect, histograms_);
        break;
      default:
        pending_.then(effect, 0);
    }
  }
  make_real();
}

void EffectSink::warp(const Warp& warp) {
  warped_.resize(size_t(warp.out.width) * size_t(warp.out.height) * kPixelBytes + kRowSlack);
  const bool alone = effects_.size() == 1 && effects_[0].kind == Effect::Kind::kWarp;
  const Box made = alone ? want_ : whole_image(warp.out);
  run_warp_(warp_job(warp), image_.data(), size_, made, warped_.data());
  std::swap(image_, warped_);
  size_ = warp.out;
}

void EffectSink::warp(const TensorWarp& warp) {
  warped_.resize(size_t(size_.width) * size_t(size_.height) * kPixelBytes + kRowSlack);
  run_tensor_warp_(warp, image_.data(), size_, warped_.data());
  std::swap(image_, warped_);
}

// Larger sums than 2^24 depend on torch's order of additions.
float EffectSink::tensor_mean(const Effect& effect, size_t pixels) {
  const bool gray = (effect.amount & kOneChannel) != 0, once = (effect.amount & kFused) != 0;
  const auto count = static_cast<float>(pixels);
  if (pixels > kMostExact && effect.width > 0) {
    if (gray) return tensor_sum(image_.data(), pixels, effect.width) / count;
    warped_.resize(pixels * kPixelBytes + kRowSlack);
    std::memcpy(warped_.data(), image_.data(), pixels * kPixelBytes);
    loops_.tensor_change_saturation(warped_.data(), pixels, 0.0f, 1.0f, once);  // three times the gray value
    return tensor_sum(warped_.data(), pixels, effect.width) / count;
  }
  int64_t sum = 0;
  if (gray) {
    for (size_t i = 0; i < pixels; ++i) sum += image_.data()[i * kPixelBytes];
  } else {
    sum = loops_.tensor_gray_sum(image_.data(), pixels, once);
  }
  return static_cast<float>(sum) / count;
}

void EffectSink::mix(const ChainMix& mix) {
  mixer_.begin(mix, image_.data(), size_t(size_.width) * size_t(size_.height) * kPixelBytes);
  for (const ChainMix::Chain& chain : mix.chains) {
    retouch(chain.effects);
    mixer_.add(image_.data(), loops_);
    counted_ = false;
  }
  mixer_.finish(image_.data(), loops_);
}

void EffectSink::make_real() {
  if (pending_.identity()) return;
  loops_.look_up(image_.data(), size_t(size_.width) * size_t(size_.height), pending_.data());
  pending_.reset();
  counted_ = false;
}

}  // namespace headrace
