// torchvision's GaussianBlur of a PIL image.
//
// Note [order of terms]: a sum of floats depends on the order of its terms, so a value near a half may round up or
// down. torch's depthwise convolution (oneDNN) adds the terms of an output one after another by fused multiply-adds,
// rows in the outer loop, columns in the inner one. headrace._recipe.arithmetic.blur_rule checks that it does so on
// this machine.
#include "core/fuse/blur.h"

#include <algorithm>
#include <cstring>

#include "core/kernels/effects/effect_math.h"

namespace headrace {

void Blur::prepare(const uint8_t* pixels, Size size, const BlurWeights& weights) {
  size_ = size;
  taps_ = static_cast<int>(weights.row.size());
  row_count_ = static_cast<int>(weights.column.size());
  const size_t count = static_cast<size_t>(size.width) * kPixelBytes;
  const size_t blocks = (count + kBlurBlock - 1) / kBlurBlock * kBlurBlock;
  stride_ = blocks + static_cast<size_t>(taps_) * kPixelBytes;
  source_.resize(stride_ * static_cast<size_t>(size.height));
  out_.resize(blocks);
  rows_.resize(static_cast<size_t>(row_count_));
  kernel_.resize(weights.row.size() * weights.column.size());
  for (size_t i = 0; i < weights.column.size(); ++i) {
    for (size_t j = 0; j < weights.row.size(); ++j) {
      kernel_[i * weights.row.size() + j] = weights.column[i] * weights.row[j];
    }
  }
  const int border = taps_ / 2;
  for (int y = 0; y < size.height; ++y) {
    const uint8_t* from = pixels + static_cast<size_t>(y) * count;
    float* to = &source_[static_cast<size_t>(y) * stride_];
    float* inside = to + static_cast<size_t>(border) * kPixelBytes;
    for (size_t i = 0; i < count; ++i) inside[i] = static_cast<float>(from[i]);
    const auto mirror = [&](int x) {
      const int at = padded_source(x, size.width, PadMode::kReflect);
      std::memcpy(inside + ptrdiff_t{x} * kPixelBytes, inside + ptrdiff_t{at} * kPixelBytes,
                  kPixelBytes * sizeof(float));
    };
    for (int x = 1; x <= border; ++x) {
      mirror(-x);
      mirror(size.width - 1 + x);
    }
    std::fill(inside + count + static_cast<size_t>(border) * kPixelBytes, to + stride_, 0.0f);
  }
}

const float* Blur::row(int y, const EffectLoops& loops) {
  for (int i = 0; i < row_count_; ++i) {
    const int at = padded_source(y + i - row_count_ / 2, size_.height, PadMode::kReflect);
    rows_[static_cast<size_t>(i)] = &source_[static_cast<size_t>(at) * stride_];
  }
  loops.convolve(rows_.data(), row_count_, taps_, kPixelBytes, kernel_.data(),
                 static_cast<size_t>(size_.width) * kPixelBytes, out_.data());
  return out_.data();
}

void Blur::run(uint8_t* pixels, Size size, const BlurWeights& weights, const EffectLoops& loops) {
  prepare(pixels, size, weights);
  const size_t count = static_cast<size_t>(size.width) * kPixelBytes;
  for (int y = 0; y < size.height; ++y, pixels += count) {
    loops.round(row(y, loops), count, pixels);
  }
}

void Blur::run(const uint8_t* pixels, Size size, const BlurWeights& weights, const EffectLoops& loops, float* to) {
  prepare(pixels, size, weights);
  const size_t count = static_cast<size_t>(size.width) * kPixelBytes;
  for (int y = 0; y < size.height; ++y, to += count) std::memcpy(to, row(y, loops), count * sizeof(float));
}

}  // namespace headrace
