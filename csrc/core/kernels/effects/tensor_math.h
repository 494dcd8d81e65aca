// Arithmetic of single values as in torchvision's functions on byte tensors, in float32. Where torch adds a product, it
// rounds once or twice, depending on its instruction set: `kFused`.
#pragma once

#include <cmath>

#include "core/kernels/effects/effect_math.h"

namespace headrace {

/// a + b * c, rounded once or twice.
template <bool kFused>
static inline float added_product(float a, float b, float c) {
  return kFused ? fused(b, c, a) : a + b * c;
}

/// A float as a byte: clamped and truncated.
static inline int cut_to_byte(float value) {
  return static_cast<int>(value > 0.0f ? (value < 255.0f ? value : 255.0f) : 0.0f);
}

/// A float as a byte: rounded, halves to the even one.
static inline int rounded_to_byte(float value) { return clamp_to_byte(static_cast<int>(std::nearbyint(value))); }

/// The gray value of a pixel.
template <bool kFused>
static inline int tensor_gray(uint32_t pixel) {
  const float red_part = static_cast<float>(red(pixel)) * 0.2989f;
  const float two = added_product<kFused>(red_part, 0.587f, static_cast<float>(green(pixel)));
  return static_cast<int>(added_product<kFused>(two, 0.114f, static_cast<float>(blue(pixel))));
}

/// `factor` times a byte plus `rest` times another value, as a byte.
template <bool kFused>
static inline int tensor_blended(int value, float other, float factor, float rest) {
  return cut_to_byte(added_product<kFused>(static_cast<float>(value) * factor, rest, other));
}

template <bool kFused>
static inline uint32_t tensor_saturated(uint32_t pixel, float factor, float rest) {
  const auto gray = static_cast<float>(tensor_gray<kFused>(pixel));
  return pack_rgbx(tensor_blended<kFused>(red(pixel), gray, factor, rest),
                   tensor_blended<kFused>(green(pixel), gray, factor, rest),
                   tensor_blended<kFused>(blue(pixel), gray, factor, rest));
}

/// The pixel with its hue turned by a share of a full turn. The first version of torchvision divides where the second
/// multiplies by a reciprocal. Truncation equals torch's floor and its fmod, as these values are not negative.
template <bool kFirst>
static inline uint32_t tensor_turned(uint32_t pixel, float turn) {
  const auto share = [](int value) {
    return kFirst ? static_cast<float>(value) / 255.0f : static_cast<float>(value) * static_cast<float>(1.0 / 255);
  };
  const auto fraction = [](float value) { return value - static_cast<float>(static_cast<int>(value)); };
  const float r = share(red(pixel)), g = share(green(pixel)), b = share(blue(pixel));
  const float more = r > g ? r : g, less = r < g ? r : g;
  const float v = more > b ? more : b, least_one = less < b ? less : b, range = v - least_one;
  const bool flat = v == least_one;
  const float s = range / (flat ? 1.0f : v), divisor = flat ? 1.0f : range;
  const float from_r = (v - r) / divisor, from_g = (v - g) / divisor, from_b = (v - b) / divisor;
  const float of_green = from_r + 2.0f - from_b, of_blue = from_g + 4.0f - from_r;
  const float sixths = v == r ? from_b - from_g : v == g ? of_green : of_blue;
  float h = fraction((kFirst ? sixths / 6.0f : sixths * static_cast<float>(1.0 / 6)) + 1.0f);
  h = fraction(h + turn);
  h = h < 0.0f ? h + 1.0f : h;

  const float six = h * 6.0f;
  const int sector = static_cast<int>(six);  // 6 if adding 1 rounded to 1: the same as 0
  const float f = fraction(six), part = s * f, rest = 1.0f - s;
  const auto byte = [](float value) {
    return static_cast<int>((value < 0.0f ? 0.0f : value < 1.0f ? value : 1.0f) * 255.999f);
  };
  const int full = static_cast<int>(v * 255.999f), p = byte(rest * v), q = byte((1.0f - part) * v);
  const int t = byte((kFirst ? 1.0f - s * (1.0f - f) : part + rest) * v);
  return pack_rgbx(sector == 1                  ? q
                   : sector == 2 || sector == 3 ? p
                   : sector == 4                ? t
                                                : full,
                   sector == 0 || sector == 6   ? t
                   : sector == 1 || sector == 2 ? full
                   : sector == 3                ? q
                                                : p,
                   sector == 2                  ? t
                   : sector == 3 || sector == 4 ? full
                   : sector == 5                ? q
                                                : p);
}

/// A byte of Sharpness; `smooth`: of the smooth version. The first version of torchvision blends the pixels at the
/// border with themselves, the second does not change them.
template <bool kFirst, bool kFused>
static inline int tensor_sharpened(int value, int smooth, float factor, float rest) {
  if (kFirst) return tensor_blended<false>(value, static_cast<float>(smooth), factor, rest);
  return cut_to_byte(added_product<kFused>(static_cast<float>(value), rest, static_cast<float>(smooth - value)));
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
