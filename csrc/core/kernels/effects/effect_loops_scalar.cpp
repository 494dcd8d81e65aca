// The inner loops of effects in plain C++: the reference for all other sets.
#include <cstring>
#include <type_traits>

#include "core/kernels/effects/effect_loops.h"
#include "core/kernels/effects/effect_math.h"
#include "core/kernels/effects/tensor_math.h"

namespace headrace {
namespace {

uint32_t load(const uint8_t* pixel) {
  uint32_t value = 0;
  std::memcpy(&value, pixel, kPixelBytes);
  return value;
}

template <class Change>
void each_pixel(uint8_t* pixels, size_t count, Change change) {
  for (size_t i = 0; i < count; ++i, pixels += kPixelBytes) {
    const uint32_t changed = change(load(pixels));
    std::memcpy(pixels, &changed, kPixelBytes);
  }
}

void gray(uint8_t* pixels, size_t count) { each_pixel(pixels, count, grayed); }

void change_saturation(uint8_t* pixels, size_t count, float factor) {
  each_pixel(pixels, count, [factor](uint32_t pixel) { return saturated(pixel, factor); });
}

void turn_hue(uint8_t* pixels, size_t count, int turn) {
  each_pixel(pixels, count, [turn](uint32_t pixel) { return turned(pixel, turn); });
}

void permute(uint8_t* pixels, size_t count, int order) {
  each_pixel(pixels, count, [order](uint32_t pixel) { return permuted(pixel, order); });
}

void look_up(uint8_t* pixels, size_t count, const uint8_t* tables) {
  each_pixel(pixels, count, [tables](uint32_t pixel) {
    return pack_rgbx(tables[red(pixel)], tables[256 + green(pixel)], tables[512 + blue(pixel)]);
  });
}

int64_t sum_of_luma(const uint8_t* pixels, size_t count) {
  int64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += luma_of(load(pixels + i * kPixelBytes));
  return sum;
}

void add_to_histograms(const uint8_t* pixels, size_t count, int32_t* histograms) {
  for (size_t i = 0; i < count; ++i, pixels += kPixelBytes) {
    for (int c = 0; c < 3; ++c) ++histograms[c * 256 + pixels[c]];
  }
}

void convolve(const float* const* rows, int row_count, int taps, int step, const float* kernel, size_t count,
              float* out) {
  for (size_t x = 0; x < count; ++x) {
    float sum = 0;
    for (int i = 0; i < row_count; ++i) {
      for (int j = 0; j < taps; ++j) sum = fused(kernel[i * taps + j], rows[i][x + static_cast<size_t>(j * step)], sum);
    }
    out[x] = sum;
  }
}

void round(const float* values, size_t count, uint8_t* bytes) {
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(blurred_byte(values[i]));
}

void sharpen(const uint8_t* const* rows, size_t count, float factor, uint8_t* out) {
  const size_t bytes = count * kPixelBytes;
  for (size_t i = 0; i < bytes; ++i) {
    const bool inside = i >= kPixelBytes && i + kPixelBytes < bytes;
    int sum = 4 * rows[1][i];
    for (int y = 0; inside && y < 3; ++y) sum += rows[y][i - kPixelBytes] + rows[y][i] + rows[y][i + kPixelBytes];
    out[i] = inside ? static_cast<uint8_t>(blended(smoothed(sum), rows[1][i], factor)) : rows[1][i];
  }
}

void box(const uint8_t* const* rows, int count, uint32_t weight, uint32_t rest, size_t bytes, uint8_t* out) {
  for (size_t i = 0; i < bytes; ++i) {
    uint32_t sum = 0;
    for (int k = 1; k + 1 < count; ++k) sum += rows[k][i];
    out[i] = boxed_byte(sum, uint32_t{rows[0][i]} + rows[count - 1][i], weight, rest);
  }
}

void add_weighted(const uint8_t* bytes, size_t count, float weight, float* sums) {
  for (size_t i = 0; i < count; ++i) sums[i] = add_product(sums[i], weight, static_cast<float>(bytes[i]));
}

void blend_sums(const float* sums, size_t count, float factor, uint8_t* bytes) {
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(blended(bytes[i], cut_byte(sums[i]), factor));
}

void blend(const uint8_t* others, size_t count, float factor, uint8_t* bytes) {
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(blended(bytes[i], others[i], factor));
}

template <class Run>
auto rounding(bool once, Run run) {
  return once ? run(std::true_type{}) : run(std::false_type{});
}

void tensor_change_saturation(uint8_t* pixels, size_t count, float factor, float rest, bool once) {
  rounding(once, [&](auto how) {
    each_pixel(pixels, count,
               [factor, rest](uint32_t pixel) { return tensor_saturated<decltype(how)::value>(pixel, factor, rest); });
  });
}

void tensor_turn_hue(uint8_t* pixels, size_t count, float turn, bool first) {
  if (first) return each_pixel(pixels, count, [turn](uint32_t pixel) { return tensor_turned<true>(pixel, turn); });
  each_pixel(pixels, count, [turn](uint32_t pixel) { return tensor_turned<false>(pixel, turn); });
}

int64_t tensor_gray_sum(const uint8_t* pixels, size_t count, bool once) {
  return rounding(once, [&](auto how) {
    int64_t sum = 0;
    for (size_t i = 0; i < count; ++i) sum += tensor_gray<decltype(how)::value>(load(pixels + i * kPixelBytes));
    return sum;
  });
}

void tensor_sharpen(const uint8_t* const* rows, size_t count, float factor, float rest, int flags, uint8_t* out) {
  const size_t bytes = count * kPixelBytes;
  const bool first = (flags & kFirstVersion) != 0;
  for (size_t i = 0; i < bytes; ++i) {
    const bool inside = i >= kPixelBytes && i + kPixelBytes < bytes;
    int sum = 4 * rows[1][i];
    for (int y = 0; inside && y < 3; ++y) sum += rows[y][i - kPixelBytes] + rows[y][i] + rows[y][i + kPixelBytes];
    const int value = rows[1][i], smooth = inside ? smoothed(sum) : value;
    out[i] =
        static_cast<uint8_t>(first                   ? tensor_sharpened<true, false>(value, smooth, factor, rest)
                             : (flags & kFused) != 0 ? tensor_sharpened<false, true>(value, smooth, factor, rest)
                                                     : tensor_sharpened<false, false>(value, smooth, factor, rest));
  }
}

}  // namespace

const EffectLoops kScalarEffects{gray,
                                 change_saturation,
                                 turn_hue,
                                 permute,
                                 look_up,
                                 sum_of_luma,
                                 add_to_histograms,
                                 convolve,
                                 round,
                                 sharpen,
                                 box,
                                 add_weighted,
                                 blend_sums,
                                 blend,
                                 tensor_change_saturation,
                                 tensor_gray_sum,
                                 tensor_sharpen,
                                 tensor_turn_hue};

}  // namespace headrace
