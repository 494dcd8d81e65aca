// Effects on single pixels and bytes, equal to Pillow's to the bit; shared by the CPU loops and by the CUDA kernel.
//
// Note [hue]: Pillow converts to HSV and back in a mix of float and double. The float32 formulas here gave the same
// bytes for all 2^24 inputs of both conversions; test_effects_exact.py checks the effect on all colours. They have no
// branches, so that compilers vectorise them, and no sum of a product, which a GPU would round once and a CPU twice.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/pixel_math.h"
#include "core/plan/effect.h"

namespace headrace {

HEADRACE_HD static inline int red(uint32_t pixel) { return static_cast<int>(pixel & 255); }
HEADRACE_HD static inline int green(uint32_t pixel) { return static_cast<int>(pixel >> 8 & 255); }
HEADRACE_HD static inline int blue(uint32_t pixel) { return static_cast<int>(pixel >> 16 & 255); }

/// a + b * c with the product rounded before the sum, as a CPU without contraction does.
HEADRACE_HD static inline float add_product(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, __fmul_rn(b, c));
#else
  return a + b * c;
#endif
}
HEADRACE_HD static inline double add_product(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, __dmul_rn(b, c));
#else
  return a + b * c;
#endif
}

HEADRACE_HD static inline int luma_of(uint32_t pixel) { return luma(red(pixel), green(pixel), blue(pixel)); }

HEADRACE_HD static inline uint32_t grayed(uint32_t pixel) {
  const int l = luma_of(pixel);
  return pack_rgbx(l, l, l);
}

HEADRACE_HD static inline uint32_t saturated(uint32_t pixel, float factor) {
  const int l = luma_of(pixel);
  return pack_rgbx(blended(l, red(pixel), factor), blended(l, green(pixel), factor), blended(l, blue(pixel), factor));
}

/// The pixel with `turn` added to its H, modulo 256.
HEADRACE_HD static inline uint32_t turned(uint32_t pixel, int turn) {
  const int r = red(pixel), g = green(pixel), b = blue(pixel);
  const int max = most(r, most(g, b)), min = least(r, least(g, b)), range = max - min;
  const int middle = r + g + b - max - min;

  // H is an integral number of sixths plus or minus the distance of the middle channel from the largest.
  const float part = static_cast<float>(max - middle) / static_cast<float>(most(range, 1));
  const bool plus = r == max ? min != b : g == max ? min == b : min == r;
  const int whole = r == max ? (min == b ? 1 : -1) : g == max ? (min == b ? 1 : 3) : min == r ? 3 : 5;
  float h = (static_cast<float>(whole) + (plus ? part : -part)) / 6.0f;
  h += h < 0.0f ? 1.0f : 0.0f;
  const int hue = (static_cast<int>(h * 255.0f) + turn) & 255;
  const int saturation = static_cast<int>(static_cast<float>(range) / static_cast<float>(most(max, 1)) * 255.0f);

  // Back: the difference between the largest channel and each channel is a trapezoid function of six times H.
  const int six = 6 * hue, depth = max * saturation;
  const auto channel = [max, depth](int share) {
    const int product = depth * least(most(share, 0), 255);  // at most 255^3: exact as a float, even plus one half
    return max - static_cast<int>(static_cast<float>(product + 32512) * (1.0f / 65025.0f));
  };
  return pack_rgbx(channel(least(six - 255, 1275 - six)), channel(most(255 - six, six - 765)),
                   channel(most(765 - six, six - 1275)));
}

/// The pixel with its channels in another order: channel_order() of effect.h.
HEADRACE_HD static inline uint32_t permuted(uint32_t pixel, int order) {
  const auto channel = [pixel](int number) { return static_cast<int>(pixel >> 8 * number & 255); };
  return pack_rgbx(channel(order & 3), channel(order >> 2 & 3), channel(order >> 4 & 3));
}

/// Pillow's filter SMOOTH of a byte. `sum`: of the nine bytes around and at it, the middle one five times. Pillow adds
/// thirteenths in float32 and cuts the sum + 1/2; it is an odd multiple of 1/26, so no rounding affects the byte.
HEADRACE_HD static inline int smoothed(int sum) { return (2 * sum + 13) / 26; }

/// A byte of Pillow's box blur, in its unsigned integers. `sum`: of the bytes in the box; `ends`: of the next byte on
/// each side.
HEADRACE_HD static inline uint8_t boxed_byte(uint32_t sum, uint32_t ends, uint32_t weight, uint32_t rest) {
  return static_cast<uint8_t>((sum * weight + ends * rest + (1u << 23)) >> 24);
}

/// A sum of weighted bytes, 0 or more, converted to a byte as numpy does: truncated, and at most 255.
HEADRACE_HD static inline int cut_byte(float sum) { return static_cast<int>(sum < 255.0f ? sum : 255.0f); }

/// a * b + c, rounded once, as torch's convolution adds a term.
HEADRACE_HD static inline float fused(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

/// The byte of a blurred value: halves to the even one, as torch.round.
HEADRACE_HD static inline int blurred_byte(float value) { return clamp_to_byte(static_cast<int>(rintf(value))); }

/// What Contrast blends with: Python's int(mean + 0.5) of the image's L.
HEADRACE_HD static inline int rounded_mean(int64_t sum, int64_t count) {
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(count) + 0.5);
}

/// PIL.ImageOps.autocontrast's table of one channel.
HEADRACE_HD static inline void autocontrast_table(const int32_t* histogram, uint8_t* table) {
  int low = 0, high = 255;
  while (low < 255 && histogram[low] == 0) ++low;
  while (high > 0 && histogram[high] == 0) --high;
  const double scale = high > low ? 255.0 / (high - low) : 1.0, offset = high > low ? -low * scale : 0.0;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(clamp_to_byte(static_cast<int>(add_product(offset, i, scale))));
  }
}

/// PIL.ImageOps.equalize's table of one channel.
HEADRACE_HD static inline void equalize_table(const int32_t* histogram, uint8_t* table) {
  int32_t pixels = 0, last = 0;  // `last`: number of pixels with the largest value present
  for (int i = 0; i < 256; ++i) {
    pixels += histogram[i];
    if (histogram[i] != 0) last = histogram[i];
  }
  const int32_t step = (pixels - last) / 255;
  int32_t sum = step / 2;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(step > 0 ? least(sum / step, 255) : i);
    sum += histogram[i];
  }
}

}  // namespace headrace
