// The inner loops of effects, written so that compilers vectorise them: no branches, one block of pixels at a time.
// The file of each instruction set includes this header; all definitions are internal to that file.
#pragma once

#include <cstring>
#include <type_traits>

#include "core/kernels/effects/effect_loops.h"
#include "core/kernels/effects/effect_math.h"
#include "core/kernels/effects/tensor_math.h"

namespace headrace {
namespace {

constexpr size_t kBlock = 64;  // pixels

// A copy of pixels as words, so that the loops have a constant length and no alias of their data.
struct PixelBlock {
  alignas(64) uint32_t pixel[kBlock];
};

template <class Change>
inline void change_block(uint8_t* pixels, size_t bytes, PixelBlock& block, Change change) {
  std::memcpy(block.pixel, pixels, bytes);
  for (size_t i = 0; i < kBlock; ++i) block.pixel[i] = change(block.pixel[i]);
  std::memcpy(pixels, block.pixel, bytes);
}

template <class Change>
inline void change_pixels(uint8_t* pixels, size_t count, Change change) {
  PixelBlock block{};
  for (; count >= kBlock; count -= kBlock, pixels += sizeof(PixelBlock))
    change_block(pixels, sizeof(PixelBlock), block, change);
  change_block(pixels, count * kPixelBytes, block, change);
}

void gray(uint8_t* pixels, size_t count) {
  change_pixels(pixels, count, [](uint32_t pixel) { return grayed(pixel); });
}

void change_saturation(uint8_t* pixels, size_t count, float factor) {
  change_pixels(pixels, count, [factor](uint32_t pixel) { return saturated(pixel, factor); });
}

void turn_hue(uint8_t* pixels, size_t count, int turn) {
  change_pixels(pixels, count, [turn](uint32_t pixel) { return turned(pixel, turn); });
}

void permute(uint8_t* pixels, size_t count, int order) {
  change_pixels(pixels, count, [order](uint32_t pixel) { return permuted(pixel, order); });
}

inline int32_t luma_of_block(const PixelBlock& block) {
  int32_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += luma_of(block.pixel[i]);
  return sum;
}

int64_t sum_of_luma(const uint8_t* pixels, size_t count) {
  int64_t sum = 0;
  PixelBlock block{};
  for (; count >= kBlock; count -= kBlock, pixels += sizeof(PixelBlock)) {
    std::memcpy(block.pixel, pixels, sizeof(PixelBlock));
    sum += luma_of_block(block);
  }
  block = {};  // black pixels after the last add nothing
  std::memcpy(block.pixel, pixels, count * kPixelBytes);
  return sum + luma_of_block(block);
}

// Two histograms per channel: neighbours are often equal, and a count that was just stored is slow to reload.
void add_to_histograms(const uint8_t* pixels, size_t count, int32_t* histograms) {
  int32_t other[3 * 256] = {};
  const auto add = [](const uint8_t* pixel, int32_t* to) {
    uint32_t word = 0;
    std::memcpy(&word, pixel, kPixelBytes);
    ++to[red(word)];
    ++to[256 + green(word)];
    ++to[512 + blue(word)];
  };
  size_t i = 0;
  for (; i + 2 <= count; i += 2) {
    add(pixels + i * kPixelBytes, histograms);
    add(pixels + (i + 1) * kPixelBytes, other);
  }
  if (i < count) add(pixels + i * kPixelBytes, other);
  for (int k = 0; k < 3 * 256; ++k) histograms[k] += other[k];
}

// Keeps a block of outputs in registers while it adds all terms.
void convolve(const float* const* rows, int row_count, int taps, int step, const float* kernel, size_t count,
              float* out) {
  for (size_t x = 0; x < count; x += kBlurBlock) {
    float sum[kBlurBlock] = {};
    for (int i = 0; i < row_count; ++i) {
      const float* from = rows[i] + x;
      for (int j = 0; j < taps; ++j, from += step) {
        const float weight = kernel[i * taps + j];
        for (size_t k = 0; k < kBlurBlock; ++k) sum[k] = fused(weight, from[k], sum[k]);
      }
    }
    std::memcpy(out + x, sum, sizeof(sum));
  }
}

void round(const float* values, size_t count, uint8_t* bytes) {
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(blurred_byte(values[i]));
}

/// Sets bytes `begin` to `end` to `at(i)`, block by block; the results of a block have no alias.
template <class At>
inline void store_in_blocks(size_t begin, size_t end, At at, uint8_t* out) {
  constexpr size_t kBytes = 64;
  size_t i = begin;
  for (; i + kBytes <= end; i += kBytes) {
    uint8_t block[kBytes];
    for (size_t k = 0; k < kBytes; ++k) block[k] = at(i + k);
    std::memcpy(out + i, block, kBytes);
  }
  for (; i < end; ++i) out[i] = at(i);
}

void sharpen(const uint8_t* const* rows, size_t count, float factor, uint8_t* out) {
  const uint8_t *above = rows[0], *row = rows[1], *below = rows[2];
  const auto at = [&](size_t i) {
    const auto three = [i](const uint8_t* from) { return from[i - kPixelBytes] + from[i] + from[i + kPixelBytes]; };
    const int sum = three(above) + three(row) + three(below) + 4 * row[i];
    return static_cast<uint8_t>(blended(smoothed(sum), row[i], factor));
  };
  const size_t end = (count - 1) * kPixelBytes;
  std::memcpy(out, row, kPixelBytes);
  std::memcpy(out + end, row + end, kPixelBytes);
  store_in_blocks(kPixelBytes, end, at, out);
}

// One block of bytes at a time, so that its sums stay in registers.
void box(const uint8_t* const* rows, int count, uint32_t weight, uint32_t rest, size_t bytes, uint8_t* out) {
  constexpr size_t kBytes = 64;
  const uint8_t *first = rows[0], *last = rows[count - 1];
  size_t i = 0;
  for (; i + kBytes <= bytes; i += kBytes) {
    uint32_t sum[kBytes] = {};
    for (int k = 1; k + 1 < count; ++k) {
      const uint8_t* from = rows[k] + i;
      for (size_t j = 0; j < kBytes; ++j) sum[j] += from[j];
    }
    uint8_t block[kBytes];
    for (size_t j = 0; j < kBytes; ++j) {
      block[j] = boxed_byte(sum[j], uint32_t{first[i + j]} + last[i + j], weight, rest);
    }
    std::memcpy(out + i, block, kBytes);
  }
  for (; i < bytes; ++i) {
    uint32_t sum = 0;
    for (int k = 1; k + 1 < count; ++k) sum += rows[k][i];
    out[i] = boxed_byte(sum, uint32_t{first[i]} + last[i], weight, rest);
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
    change_pixels(pixels, count, [factor, rest](uint32_t pixel) {
      return tensor_saturated<decltype(how)::value>(pixel, factor, rest);
    });
  });
}

void tensor_turn_hue(uint8_t* pixels, size_t count, float turn, bool first) {
  if (first) return change_pixels(pixels, count, [turn](uint32_t pixel) { return tensor_turned<true>(pixel, turn); });
  change_pixels(pixels, count, [turn](uint32_t pixel) { return tensor_turned<false>(pixel, turn); });
}

// Black pixels after the last add nothing.
int64_t tensor_gray_sum(const uint8_t* pixels, size_t count, bool once) {
  return rounding(once, [&](auto how) {
    int64_t sum = 0;
    PixelBlock block{};
    for (size_t left = count; left > 0;) {
      const size_t some = left < kBlock ? left : kBlock;
      if (some < kBlock) block = {};
      std::memcpy(block.pixel, pixels + (count - left) * kPixelBytes, some * kPixelBytes);
      int32_t of_block = 0;
      for (size_t i = 0; i < kBlock; ++i) of_block += tensor_gray<decltype(how)::value>(block.pixel[i]);
      sum += of_block;
      left -= some;
    }
    return sum;
  });
}

template <bool kFirst, bool kFused>
inline void tensor_sharpen_row(const uint8_t* const* rows, size_t count, float factor, float rest, uint8_t* out) {
  const uint8_t *above = rows[0], *row = rows[1], *below = rows[2];
  const auto at = [&](size_t i) {
    const auto three = [i](const uint8_t* from) { return from[i - kPixelBytes] + from[i] + from[i + kPixelBytes]; };
    const int smooth = smoothed(three(above) + three(row) + three(below) + 4 * row[i]);
    return static_cast<uint8_t>(tensor_sharpened<kFirst, kFused>(row[i], smooth, factor, rest));
  };
  const size_t end = (count - 1) * kPixelBytes;
  for (const size_t border : {size_t{0}, end}) {
    for (size_t i = border; i < border + kPixelBytes; ++i) {
      out[i] = static_cast<uint8_t>(tensor_sharpened<kFirst, kFused>(row[i], row[i], factor, rest));
    }
  }
  store_in_blocks(kPixelBytes, end, at, out);
}

void tensor_sharpen(const uint8_t* const* rows, size_t count, float factor, float rest, int flags, uint8_t* out) {
  if ((flags & kFirstVersion) != 0) return tensor_sharpen_row<true, false>(rows, count, factor, rest, out);
  if ((flags & kFused) != 0) return tensor_sharpen_row<false, true>(rows, count, factor, rest, out);
  tensor_sharpen_row<false, false>(rows, count, factor, rest, out);
}

}  // namespace
}  // namespace headrace
