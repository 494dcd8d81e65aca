// The loops from coefficients to pixels for NEON: one block, or 16 pixels, at once. See Note [16-bit inverse].
#include <arm_neon.h>

#include "core/jpeg/idct/block_loops.h"
#include "core/jpeg/idct/islow.h"

namespace headrace {
namespace {

constexpr int kLanes = 16;  // pixels

/// Four 32-bit sums of each half of a row.
struct Sums {
  int32x4_t low, high;
};

Sums product(int16x8_t a, int16_t by) { return {vmull_n_s16(vget_low_s16(a), by), vmull_high_n_s16(a, by)}; }
Sums product(int16x8_t a, int16_t by, const Sums& plus) {
  return {vmlal_n_s16(plus.low, vget_low_s16(a), by), vmlal_high_n_s16(plus.high, a, by)};
}
Sums shifted(int16x8_t a) { return {vshll_n_s16(vget_low_s16(a), kIslowBits), vshll_high_n_s16(a, kIslowBits)}; }
Sums add(const Sums& a, const Sums& b) { return {vaddq_s32(a.low, b.low), vaddq_s32(a.high, b.high)}; }
Sums subtract(const Sums& a, const Sums& b) { return {vsubq_s32(a.low, b.low), vsubq_s32(a.high, b.high)}; }

/// The even and the odd part of the transform of the values x[0..7] of each lane. kHalf: x[4..7] are zero.
template <bool kHalf>
void parts(const int16x8_t (&x)[8], Sums (&even)[4], Sums (&odd)[4]) {
  if constexpr (kHalf) {
    const Sums x0 = shifted(x[0]), e2 = product(x[2], kF0541), e3 = product(x[2], kF0541 + kF0765);
    even[0] = add(x0, e3);
    even[1] = add(x0, e2);
    even[2] = subtract(x0, e2);
    even[3] = subtract(x0, e3);
    // As below with x[5] = x[7] = 0.
    odd[0] = product(x[1], kF1501 - kF0899 + kF1175 - kF0390, product(x[3], kF1175));
    odd[1] = product(x[1], kF1175, product(x[3], kF3072 - kF2562 + kF1175 - kF1961));
    odd[2] = product(x[1], kF1175 - kF0390, product(x[3], kF1175 - kF2562));
    odd[3] = product(x[1], kF1175 - kF0899, product(x[3], kF1175 - kF1961));
  } else {
    const Sums sum = shifted(vaddq_s16(x[0], x[4])), difference = shifted(vsubq_s16(x[0], x[4]));
    const Sums e2 = product(x[6], kF0541 - kF1847, product(x[2], kF0541));
    const Sums e3 = product(x[6], kF0541, product(x[2], kF0541 + kF0765));
    even[0] = add(sum, e3);
    even[1] = add(difference, e2);
    even[2] = subtract(difference, e2);
    even[3] = subtract(sum, e3);
    const int16x8_t a = vaddq_s16(x[7], x[3]), b = vaddq_s16(x[5], x[1]);
    const Sums c = product(b, kF1175, product(a, kF1175 - kF1961));
    const Sums d = product(b, kF1175 - kF0390, product(a, kF1175));
    odd[0] = product(x[1], kF1501 - kF0899, product(x[7], -kF0899, d));
    odd[1] = product(x[3], kF3072 - kF2562, product(x[5], -kF2562, c));
    odd[2] = product(x[3], -kF2562, product(x[5], kF2053 - kF2562, d));
    odd[3] = product(x[1], -kF0899, product(x[7], kF0298 - kF0899, c));
  }
}

int16x8_t column_value(const Sums& v) {
  return vrshrn_high_n_s32(vrshrn_n_s32(v.low, kColumnsShift), v.high, kColumnsShift);
}

/// 16 of the bits are dropped before this, the others here, with rounding and saturation: together this is exact.
int8x8_t row_value(int16x8_t upper) { return vqrshrn_n_s16(upper, kRowsShift - 16); }
int8x8_t row_sum(const Sums& a, const Sums& b) {
  return row_value(vaddhn_high_s32(vaddhn_s32(a.low, b.low), a.high, b.high));
}
int8x8_t row_difference(const Sums& a, const Sums& b) {
  return row_value(vsubhn_high_s32(vsubhn_s32(a.low, b.low), a.high, b.high));
}

void swap_words(int16x8_t& a, int16x8_t& b) {
  const int16x8_t first = vtrn1q_s16(a, b);
  b = vtrn2q_s16(a, b);
  a = first;
}
void swap_pairs(int16x8_t& a, int16x8_t& b) {
  const int32x4_t u = vreinterpretq_s32_s16(a), v = vreinterpretq_s32_s16(b);
  a = vreinterpretq_s16_s32(vtrn1q_s32(u, v));
  b = vreinterpretq_s16_s32(vtrn2q_s32(u, v));
}
void swap_halves(int16x8_t& a, int16x8_t& b) {
  const int64x2_t u = vreinterpretq_s64_s16(a), v = vreinterpretq_s64_s16(b);
  a = vreinterpretq_s16_s64(vtrn1q_s64(u, v));
  b = vreinterpretq_s16_s64(vtrn2q_s64(u, v));
}

/// Rows to columns: swaps the bits of the row number with those of the lane number.
void transpose(int16x8_t (&x)[8]) {
  for (int i = 0; i < 8; i += 2) swap_words(x[i], x[i + 1]);
  for (int i = 0; i < 2; ++i) {
    swap_pairs(x[i], x[i + 2]);
    swap_pairs(x[i + 4], x[i + 6]);
  }
  for (int i = 0; i < 4; ++i) swap_halves(x[i], x[i + 4]);
}

/// kQuarter: only the upper left 4 x 4 coefficients may differ from zero.
template <bool kQuarter>
void invert_block(const int16_t* block, const uint16_t* quant, uint8_t* samples, size_t stride) {
  int16x8_t x[8];
  for (int y = 0; y < (kQuarter ? 4 : 8); ++y)
    x[y] = vmulq_s16(vld1q_s16(block + y * kBlockEdge), vreinterpretq_s16_u16(vld1q_u16(quant + y * kBlockEdge)));
  Sums even[4], odd[4];
  parts<kQuarter>(x, even, odd);
  for (int i = 0; i < 4; ++i) {
    x[i] = column_value(add(even[i], odd[i]));
    x[7 - i] = column_value(subtract(even[i], odd[i]));
  }
  transpose(x);
  parts<kQuarter>(x, even, odd);
  int8x8_t columns[8];
  for (int i = 0; i < 4; ++i) {
    columns[i] = row_sum(even[i], odd[i]);
    columns[7 - i] = row_difference(even[i], odd[i]);
  }
  // The 64 samples fill one table: one look-up returns two rows.
  int8x16x4_t table;
  for (int i = 0; i < 4; ++i) table.val[i] = vcombine_s8(columns[2 * i], columns[2 * i + 1]);
  uint8x16_t at = {0, 8, 16, 24, 32, 40, 48, 56, 1, 9, 17, 25, 33, 41, 49, 57};
  for (int y = 0; y < kBlockEdge; y += 2, at = vaddq_u8(at, vdupq_n_u8(2))) {
    const uint8x16_t rows = veorq_u8(vreinterpretq_u8_s8(vqtbl4q_s8(table, at)), vdupq_n_u8(128));
    vst1_u8(samples + static_cast<size_t>(y) * stride, vget_low_u8(rows));
    vst1_u8(samples + static_cast<size_t>(y + 1) * stride, vget_high_u8(rows));
  }
}

bool only_quarter(const int16_t* block) {
  int16x8_t upper = vld1q_s16(block), lower = vld1q_s16(block + 4 * kBlockEdge);
  for (int y = 1; y < 4; ++y) {
    upper = vorrq_s16(upper, vld1q_s16(block + y * kBlockEdge));
    lower = vorrq_s16(lower, vld1q_s16(block + (y + 4) * kBlockEdge));
  }
  const int16x4_t any = vorr_s16(vget_high_s16(upper), vorr_s16(vget_low_s16(lower), vget_high_s16(lower)));
  return vget_lane_u64(vreinterpret_u64_s16(any), 0) == 0;
}

void invert(const int16_t* blocks, int count, const uint16_t* quant, uint8_t* samples, size_t stride) {
  for (; count > 0; --count, blocks += kBlockValues, samples += kBlockEdge) {
    if (only_quarter(blocks))
      invert_block<true>(blocks, quant, samples, stride);
    else
      invert_block<false>(blocks, quant, samples, stride);
  }
}

/// 16 values of 16 bits.
struct Words {
  uint16x8_t low, high;
};

/// a + 3 b
Words weighted(uint8x16_t a, uint8x16_t b) {
  const uint8x8_t three = vdup_n_u8(3);
  return {vmlal_u8(vmovl_u8(vget_low_u8(a)), vget_low_u8(b), three), vmlal_high_u8(vmovl_high_u8(a), b, vdupq_n_u8(3))};
}
Words weighted(const Words& a, const Words& b) {
  return {vmlaq_n_u16(a.low, b.low, 3), vmlaq_n_u16(a.high, b.high, 3)};
}
template <int kShift>
uint8x16_t mean(const Words& sum, int rounding) {
  const uint16x8_t add = vdupq_n_u16(static_cast<uint16_t>(rounding));
  return vshrn_high_n_u16(vshrn_n_u16(vaddq_u16(sum.low, add), kShift), vaddq_u16(sum.high, add), kShift);
}

void upsample_h2v1(const uint8_t* row, int count, uint8_t* to) {
  for (int i = 0; i < count; i += kLanes, row += kLanes, to += 2 * kLanes) {
    const uint8x16_t here = vld1q_u8(row);
    const uint8x16x2_t pairs{
        {mean<2>(weighted(vld1q_u8(row - 1), here), 1), mean<2>(weighted(vld1q_u8(row + 1), here), 2)}};
    vst2q_u8(to, pairs);
  }
}

void upsample_h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* to) {
  for (int i = 0; i < count; i += kLanes, to += 2 * kLanes) {
    const auto column = [&](int at) { return weighted(vld1q_u8(far + at), vld1q_u8(near + at)); };
    const Words here = column(i);
    const uint8x16x2_t pairs{{mean<4>(weighted(column(i - 1), here), 8), mean<4>(weighted(column(i + 1), here), 7)}};
    vst2q_u8(to, pairs);
  }
}

void upsample_h1v2(const uint8_t* near, const uint8_t* far, int rounding, int count, uint8_t* to) {
  for (int i = 0; i < count; i += kLanes)
    vst1q_u8(to + i, mean<2>(weighted(vld1q_u8(far + i), vld1q_u8(near + i)), rounding));
}

void store_pixels(uint8_t* to, uint8x16_t r, uint8x16_t g, uint8x16_t b) {
  const uint8x16x4_t pixels{{r, g, b, vdupq_n_u8(255)}};  // Clang's vst4q_u8 is a macro, which takes no list
  vst4q_u8(to, pixels);
}

/// What Cb and Cr add to eight values of Y. See Note [16-bit colours]; vqrdmulhq is multiply_round.
struct Colours {
  int16x8_t r, g, b;

  Colours(uint8x8_t cb, uint8x8_t cr) {
    const uint8x8_t middle = vdup_n_u8(128);
    const int16x8_t u = vreinterpretq_s16_u16(vsubl_u8(cb, middle)), v = vreinterpretq_s16_u16(vsubl_u8(cr, middle));
    r = vaddq_s16(v, vqrdmulhq_n_s16(v, 13173));
    b = vaddq_s16(vaddq_s16(u, u), vqrdmulhq_n_s16(u, -7471));
    // -22554 Cb - 46802 Cr: half of both products, whose last bit is zero.
    const int32x4_t low = vmlal_n_s16(vmull_n_s16(vget_low_s16(u), -11277), vget_low_s16(v), -23401);
    const int32x4_t high = vmlal_high_n_s16(vmull_high_n_s16(u, -11277), v, -23401);
    g = vrshrn_high_n_s32(vrshrn_n_s32(low, 15), high, 15);
  }
};

/// Adds luma to the chroma terms of 16 pixels and saturates to bytes.
uint8x16_t add_luma(uint8x16_t y, int16x8_t low, int16x8_t high) {
  const auto sum = [](int16x8_t colour, uint8x8_t light) {
    return vreinterpretq_s16_u16(vaddw_u8(vreinterpretq_u16_s16(colour), light));
  };
  return vqmovun_high_s16(vqmovun_s16(sum(low, vget_low_u8(y))), sum(high, vget_high_u8(y)));
}

void colour(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int count, uint8_t* pixels) {
  for (int i = 0; i < count; i += kLanes) {
    const uint8x16_t light = vld1q_u8(y + i), u = vld1q_u8(cb + i), v = vld1q_u8(cr + i);
    const Colours low(vget_low_u8(u), vget_low_u8(v)), high(vget_high_u8(u), vget_high_u8(v));
    store_pixels(pixels + 4 * i, add_luma(light, low.r, high.r), add_luma(light, low.g, high.g),
                 add_luma(light, low.b, high.b));
  }
}

void gray(const uint8_t* y, int count, uint8_t* pixels) {
  for (int i = 0; i < count; i += kLanes) {
    const uint8x16_t light = vld1q_u8(y + i);
    store_pixels(pixels + 4 * i, light, light, light);
  }
}

}  // namespace

const BlockLoops kNeonBlocks{"neon", invert, upsample_h2v1, upsample_h2v2, upsample_h1v2, colour, gray};

}  // namespace headrace
