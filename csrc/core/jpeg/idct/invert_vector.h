// The inverse DCT of a group of blocks, for the instruction set S of the file that includes it: a vector holds one row
// of each block. All definitions are internal to that file. See Note [16-bit inverse].
#pragma once

#include "core/jpeg/idct/block_loops.h"
#include "core/jpeg/idct/islow.h"

namespace headrace {
namespace {

template <class S>
struct Inverse {
  using V = typename S::V;
  struct Pair {  // 32-bit sums of the lower and of the upper four values of each block's row
    V low, high;
  };

  static Pair unpacked(V a, V b) { return {S::unpack_low16(a, b), S::unpack_high16(a, b)}; }
  /// a * by_a + b * by_b
  static Pair product(const Pair& ab, int by_a, int by_b) {
    const V by = S::pairs(by_a, by_b);
    return {S::multiply_add(ab.low, by), S::multiply_add(ab.high, by)};
  }
  static Pair product(const Pair& ab, int by_a, int by_b, const Pair& plus) {
    const V by = S::pairs(by_a, by_b);
    return {S::multiply_add(ab.low, by, plus.low), S::multiply_add(ab.high, by, plus.high)};
  }
  static V finished(V low, V high, int shift) {
    return S::saturated16(S::shift_right32(low, shift), S::shift_right32(high, shift));
  }

  /// One pass over the values x[0..7] of each lane. kHalf: x[4..7] are zero and need not be set.
  template <bool kHalf, int kShift>
  static void pass(V (&x)[8]) {
    constexpr int kOne = 1 << kIslowBits;
    // half = kRounding * kHalfUnit, since factors have 16 bits
    constexpr int kHalfUnit = 1 << (kColumnsShift - 1), kRounding = (1 << (kShift - 1)) / kHalfUnit;
    const V rounding = S::all16(kRounding);
    Pair e0, e1, e2, e3, o0, o1, o2, o3;
    if constexpr (kHalf) {
      const V half = S::all32(1 << (kShift - 1));
      const Pair start{half, half}, x02 = unpacked(x[0], x[2]), x31 = unpacked(x[3], x[1]);
      e0 = product(x02, kOne, kF0541 + kF0765, start);
      e1 = product(x02, kOne, kF0541, start);
      e2 = product(x02, kOne, -kF0541, start);
      e3 = product(x02, kOne, -kF0541 - kF0765, start);
      // As below with x[5] = x[7] = 0.
      o0 = product(x31, kF1175, kF1501 - kF0899 + kF1175 - kF0390);
      o1 = product(x31, kF3072 - kF2562 + kF1175 - kF1961, kF1175);
      o2 = product(x31, kF1175 - kF2562, kF1175 - kF0390);
      o3 = product(x31, kF1175 - kF1961, kF1175 - kF0899);
    } else {
      const Pair sum = product(unpacked(S::add16(x[0], x[4]), rounding), kOne, kHalfUnit);
      const Pair difference = product(unpacked(S::subtract16(x[0], x[4]), rounding), kOne, kHalfUnit);
      const Pair x26 = unpacked(x[2], x[6]);
      e0 = product(x26, kF0541 + kF0765, kF0541, sum);
      e3 = product(x26, -kF0541 - kF0765, -kF0541, sum);
      e1 = product(x26, kF0541, kF0541 - kF1847, difference);
      e2 = product(x26, -kF0541, kF1847 - kF0541, difference);
      const Pair ab = unpacked(S::add16(x[7], x[3]), S::add16(x[5], x[1]));
      const Pair x71 = unpacked(x[7], x[1]), x53 = unpacked(x[5], x[3]);
      const Pair c = product(ab, kF1175 - kF1961, kF1175), d = product(ab, kF1175, kF1175 - kF0390);
      o0 = product(x71, -kF0899, kF1501 - kF0899, d);
      o1 = product(x53, -kF2562, kF3072 - kF2562, c);
      o2 = product(x53, kF2053 - kF2562, -kF2562, d);
      o3 = product(x71, kF0298 - kF0899, -kF0899, c);
    }
    const auto finish = [&x](int at, const Pair& even, const Pair& odd) {
      x[at] = finished(S::add32(even.low, odd.low), S::add32(even.high, odd.high), kShift);
      x[7 - at] = finished(S::subtract32(even.low, odd.low), S::subtract32(even.high, odd.high), kShift);
    };
    finish(0, e0, o0);
    finish(1, e1, o1);
    finish(2, e2, o2);
    finish(3, e3, o3);
  }

  /// Rows to columns, within each block.
  static void transpose(V (&x)[8]) {
    const V a0 = S::unpack_low16(x[0], x[1]), a1 = S::unpack_low16(x[2], x[3]);
    const V a2 = S::unpack_low16(x[4], x[5]), a3 = S::unpack_low16(x[6], x[7]);
    const V a4 = S::unpack_high16(x[0], x[1]), a5 = S::unpack_high16(x[2], x[3]);
    const V a6 = S::unpack_high16(x[4], x[5]), a7 = S::unpack_high16(x[6], x[7]);
    const V b0 = S::unpack_low32(a0, a1), b1 = S::unpack_high32(a0, a1);
    const V b2 = S::unpack_low32(a2, a3), b3 = S::unpack_high32(a2, a3);
    const V b4 = S::unpack_low32(a4, a5), b5 = S::unpack_high32(a4, a5);
    const V b6 = S::unpack_low32(a6, a7), b7 = S::unpack_high32(a6, a7);
    x[0] = S::unpack_low64(b0, b2);
    x[1] = S::unpack_high64(b0, b2);
    x[2] = S::unpack_low64(b1, b3);
    x[3] = S::unpack_high64(b1, b3);
    x[4] = S::unpack_low64(b4, b6);
    x[5] = S::unpack_high64(b4, b6);
    x[6] = S::unpack_low64(b5, b7);
    x[7] = S::unpack_high64(b5, b7);
  }

  /// Columns of values to rows of samples: vector k holds the rows 2 k and 2 k + 1 of each block.
  static void to_samples(const V (&x)[8], V (&rows)[4]) {
    const V a = S::saturated8(x[0], x[4]), b = S::saturated8(x[1], x[5]);
    const V c = S::saturated8(x[2], x[6]), d = S::saturated8(x[3], x[7]);
    const V x01 = S::unpack_low8(a, b), x45 = S::unpack_high8(a, b);
    const V x23 = S::unpack_low8(c, d), x67 = S::unpack_high8(c, d);
    const V upper = S::unpack_low16(x01, x23), upper_right = S::unpack_low16(x45, x67);
    const V lower = S::unpack_high16(x01, x23), lower_right = S::unpack_high16(x45, x67);
    rows[0] = S::unpack_low32(upper, upper_right);
    rows[1] = S::unpack_high32(upper, upper_right);
    rows[2] = S::unpack_low32(lower, lower_right);
    rows[3] = S::unpack_high32(lower, lower_right);
    for (V& pair : rows) pair = S::exclusive_or(pair, S::all8(-128));
  }

  /// kQuarter: only the upper left 4 x 4 coefficients of each block may differ from zero.
  template <bool kQuarter>
  static void group(const int16_t* blocks, const uint16_t* quant, uint8_t* samples, size_t stride) {
    V x[8], rows[4];
    S::template load_rows<kQuarter>(blocks, x);
    for (int y = 0; y < (kQuarter ? 4 : 8); ++y) x[y] = S::multiply16(x[y], S::row_for_all(quant + y * kBlockEdge));
    if (S::any_beyond_13_bits(x[0])) {  // where the result depends on which rows are zero
      invert_scalar(blocks, S::kBlocks, quant, samples, stride);
      return;
    }
    pass<kQuarter, kColumnsShift>(x);
    transpose(x);
    pass<kQuarter, kRowsShift>(x);
    to_samples(x, rows);
    for (int k = 0; k < 4; ++k) S::store_two_rows(rows[k], samples + static_cast<size_t>(2 * k) * stride, stride);
  }

  static void run(const int16_t* blocks, int count, const uint16_t* quant, uint8_t* samples, size_t stride) {
    for (; count > 0; count -= S::kBlocks) {
      if (S::only_quarter(blocks))
        group<true>(blocks, quant, samples, stride);
      else
        group<false>(blocks, quant, samples, stride);
      blocks += S::kBlocks * kBlockValues;
      samples += S::kBlocks * kBlockEdge;
    }
  }
};

}  // namespace
}  // namespace headrace
