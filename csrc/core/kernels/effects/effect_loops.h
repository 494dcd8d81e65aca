// The inner loops of effects, one set per instruction set. All sets give the same bytes as the scalar one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

/// Loops over `count` consecutive RGBX pixels, changed in place. Tables and histograms have 256 entries per channel.
struct EffectLoops {
  void (*gray)(uint8_t* pixels, size_t count);
  void (*change_saturation)(uint8_t* pixels, size_t count, float factor);
  void (*turn_hue)(uint8_t* pixels, size_t count, int turn);
  /// `order`: channel_order() of effect.h.
  void (*permute)(uint8_t* pixels, size_t count, int order);
  void (*look_up)(uint8_t* pixels, size_t count, const uint8_t* tables);
  int64_t (*sum_of_luma)(const uint8_t* pixels, size_t count);
  /// Adds each byte to its channel's histogram.
  void (*add_to_histograms)(const uint8_t* pixels, size_t count, int32_t* histograms);
  /// One row of a convolution: out[x] = sum of kernel[i * taps + j] * rows[i][x + j * step], by fused multiply-adds
  /// with i in the outer loop. May read rows and write `out` up to a multiple of kBlurBlock elements.
  void (*convolve)(const float* const* rows, int row_count, int taps, int step, const float* kernel, size_t count,
                   float* out);
  /// Rounds blurred values to bytes.
  void (*round)(const float* values, size_t count, uint8_t* bytes);
  /// One row of Sharpness: blends rows[1], between rows[0] and rows[2], with its smooth version. The first and the last
  /// pixel are copied. `out` is none of the rows.
  void (*sharpen)(const uint8_t* const* rows, size_t count, float factor, uint8_t* out);
  /// One row of a box blur: each byte becomes the weighted mean of the bytes at the same position in `count` rows, at
  /// least three. The first and the last row have the weight `rest`, the others `weight`, in units of 2^-24. `out` is
  /// none of the rows.
  void (*box)(const uint8_t* const* rows, int count, uint32_t weight, uint32_t rest, size_t bytes, uint8_t* out);
  /// Adds each of `count` bytes times `weight` to its sum; product and sum are rounded separately.
  void (*add_weighted)(const uint8_t* bytes, size_t count, float weight, float* sums);
  /// Blends bytes with sums truncated to bytes: PIL.Image.blend. `bytes` is changed.
  void (*blend_sums)(const float* sums, size_t count, float factor, uint8_t* bytes);
  /// Blends bytes with others: PIL.Image.blend. `bytes` is changed.
  void (*blend)(const uint8_t* others, size_t count, float factor, uint8_t* bytes);
  /// As torchvision changes a byte tensor; `once`: torch rounds a sum with a product once (tensor_math.h).
  void (*tensor_change_saturation)(uint8_t* pixels, size_t count, float factor, float rest, bool once);
  /// The sum of the gray values of torchvision's Contrast.
  int64_t (*tensor_gray_sum)(const uint8_t* pixels, size_t count, bool once);
  /// One row of torchvision's Sharpness: rows and `out` as those of `sharpen`; `flags`: a sum of TensorFlag.
  void (*tensor_sharpen)(const uint8_t* const* rows, size_t count, float factor, float rest, int flags, uint8_t* out);
  /// torchvision's hue: `turn` is a share of a full turn; `first`: as its first version.
  void (*tensor_turn_hue)(uint8_t* pixels, size_t count, float turn, bool first);
};

inline constexpr size_t kBlurBlock = 64;

extern const EffectLoops kScalarEffects;
#if defined(__x86_64__) || defined(_M_X64)
extern const EffectLoops kAvx2Effects;
extern const EffectLoops kAvx512Effects;
#endif
extern const EffectLoops kNeonEffects;

}  // namespace headrace
