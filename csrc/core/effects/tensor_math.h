// Arithmetic of single values as torchvision's functions on byte tensors do it, in float32. Where torch adds a product
// it rounds once or twice, which depends on its instruction set: `kOnce`.
#pragma once

#include <cmath>

#include "core/effects/effect_math.h"

namespace headrace {

/// a + b * c, rounded once or twice.
template <bool kOnce>
static inline float added_product(float a, float b, float c) {
  return kOnce ? fused(b, c, a) : a + b * c;
}

/// A float as a byte: clamped, and without its fraction.
static inline int cut_to_byte(float value) {
  return static_cast<int>(value > 0.0f ? (value < 255.0f ? value : 255.0f) : 0.0f);
}

/// A float as a byte: rounded, halves to the even one.
static inline int rounded_to_byte(float value) { return clamp_to_byte(static_cast<int>(std::nearbyint(value))); }

/// The gray value of a pixel.
template <bool kOnce>
static inline int tensor_gray(uint32_t pixel) {
  const float red_part = static_cast<float>(red(pixel)) * 0.2989f;
  const float two = added_product<kOnce>(red_part, 0.587f, static_cast<float>(green(pixel)));
  return static_cast<int>(added_product<kOnce>(two, 0.114f, static_cast<float>(blue(pixel))));
}

/// `factor` times a byte plus `rest` times another value, as a byte.
template <bool kOnce>
static inline int tensor_blended(int value, float other, float factor, float rest) {
  return cut_to_byte(added_product<kOnce>(static_cast<float>(value) * factor, rest, other));
}

template <bool kOnce>
static inline uint32_t tensor_saturated(uint32_t pixel, float factor, float rest) {
  const auto gray = static_cast<float>(tensor_gray<kOnce>(pixel));
  return packed(tensor_blended<kOnce>(red(pixel), gray, factor, rest),
                tensor_blended<kOnce>(green(pixel), gray, factor, rest),
                tensor_blended<kOnce>(blue(pixel), gray, factor, rest));
}

/// A byte of Sharpness; `smooth`: of the smooth version. The first version of torchvision blends the pixels at the
/// border with themselves, the second leaves them alone.
template <bool kFirst, bool kOnce>
static inline int tensor_sharpened(int value, int smooth, float factor, float rest) {
  if (kFirst) return tensor_blended<false>(value, static_cast<float>(smooth), factor, rest);
  return cut_to_byte(added_product<kOnce>(static_cast<float>(value), rest, static_cast<float>(smooth - value)));
}

/// Autocontrast's table of one channel.
static inline void tensor_autocontrast_table(const int32_t* histogram, bool first_version, uint8_t* table) {
  int low = 0, high = 255;
  while (low < 255 && histogram[low] == 0) ++low;
  while (high > 0 && histogram[high] == 0) --high;
  const auto range = static_cast<float>(high - low);
  const float scale = first_version ? 1.0f / range * 255.0f : range * static_cast<float>(1.0 / 255);
  for (int i = 0; i < 256; ++i) {
    const auto above = static_cast<float>(i - low);
    table[i] = static_cast<uint8_t>(high <= low ? i : cut_to_byte(first_version ? above * scale : above / scale));
  }
}

}  // namespace headrace
