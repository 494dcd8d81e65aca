// The inner loops for NEON, which every 64-bit Arm processor has.
//
// Note [widened bytes]: a table look-up widens four bytes to four 32-bit lanes in one instruction, and one multiply-add
// takes a whole weight of 22 bits. Sums wrap as the scalar ones do.
#include <arm_neon.h>

#include "core/base/geometry.h"
#include "core/kernels/resize/kernel_sets.h"

namespace headrace {
namespace {

constexpr int kLanes = 16;  // bytes of a register

int least(int a, int b) { return a < b ? a : b; }

/// Selectors for vqtbl1q_u8: bytes 4 i to 4 i + 3 as 32-bit lanes. 255 gives zero.
struct Widen {
  uint8x16_t quarter[4];

  Widen() {
    const uint32x4_t first = {0xFFFFFF00, 0xFFFFFF01, 0xFFFFFF02, 0xFFFFFF03};
    for (uint32_t i = 0; i < 4; ++i) quarter[i] = vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(4 * i)));
  }
  int32x4_t operator()(uint8x16_t bytes, int i) const { return vreinterpretq_s32_u8(vqtbl1q_u8(bytes, quarter[i])); }
};

/// The bytes of 16 sums: shifted right by 16, narrowed to 16 bits; then by 6, narrowed to 8 bits.
uint8x16_t bytes_of(const int32x4_t (&sums)[4]) {
  static_assert(kWeightBits == 22);
  const uint16x8_t low = vqshrun_high_n_s32(vqshrun_n_s32(sums[0], 16), sums[1], 16);
  const uint16x8_t high = vqshrun_high_n_s32(vqshrun_n_s32(sums[2], 16), sums[3], 16);
  return vqshrn_high_n_u16(vqshrn_n_u16(low, 6), high, 6);
}

/// The last pixel of a row in any window. A window with fewer taps than the groups of four multiplies arbitrary pixels
/// by weights of zero: it reads none after this one except in the row's slack.
int last_tap(const TableView& table) { return table.start[table.count - 1] + table.taps[table.count - 1] - 1; }

/// One output in four rows.
void resample_x_four(const Widen& widen, const uint8_t* src, size_t src_stride, const TableView& table, int x, int last,
                     uint8_t* dst, size_t dst_stride) {
  const int32_t* weight = table.weight + size_t(x) * size_t(table.taps_stride);
  const int taps = table.taps[x];
  int32x4_t sums[4];
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(kWeightHalf);
  for (int t = 0; t < taps; t += 4) {
    const int32x4_t four = vld1q_s32(weight + t);
    const uint8_t* from = src + ptrdiff_t(least(table.start[x] + t, last)) * kPixelBytes;
    for (int r = 0; r < 4; ++r) {
      const uint8x16_t pixels = vld1q_u8(from + size_t(r) * src_stride);
      sums[r] = vmlaq_laneq_s32(sums[r], widen(pixels, 0), four, 0);
      sums[r] = vmlaq_laneq_s32(sums[r], widen(pixels, 1), four, 1);
      sums[r] = vmlaq_laneq_s32(sums[r], widen(pixels, 2), four, 2);
      sums[r] = vmlaq_laneq_s32(sums[r], widen(pixels, 3), four, 3);
    }
  }
  const uint32x4_t made = vreinterpretq_u32_u8(bytes_of(sums));
  dst += ptrdiff_t(x) * kPixelBytes;
  const auto put = [&](int r, uint32_t pixel) { __builtin_memcpy(dst + size_t(r) * dst_stride, &pixel, kPixelBytes); };
  put(0, vgetq_lane_u32(made, 0));
  put(1, vgetq_lane_u32(made, 1));
  put(2, vgetq_lane_u32(made, 2));
  put(3, vgetq_lane_u32(made, 3));
}

/// Four outputs of one row.
void resample_x_row(const Widen& widen, const uint8_t* src, const TableView& table, int x, int last, uint8_t* dst) {
  int32x4_t sums[4];
  const int count = least(4, table.count - x);
  for (int i = 0; i < 4; ++i) {
    const int at = x + least(i, count - 1);
    const int32_t* weight = table.weight + size_t(at) * size_t(table.taps_stride);
    int32x4_t sum = vdupq_n_s32(kWeightHalf);
    for (int t = 0; t < table.taps[at]; t += 4) {
      const int32x4_t four = vld1q_s32(weight + t);
      const uint8x16_t pixels = vld1q_u8(src + ptrdiff_t(least(table.start[at] + t, last)) * kPixelBytes);
      sum = vmlaq_laneq_s32(sum, widen(pixels, 0), four, 0);
      sum = vmlaq_laneq_s32(sum, widen(pixels, 1), four, 1);
      sum = vmlaq_laneq_s32(sum, widen(pixels, 2), four, 2);
      sum = vmlaq_laneq_s32(sum, widen(pixels, 3), four, 3);
    }
    sums[i] = sum;
  }
  uint8_t made[kLanes];
  vst1q_u8(made, bytes_of(sums));
  __builtin_memcpy(dst + ptrdiff_t(x) * kPixelBytes, made, size_t(count) * kPixelBytes);
}

void rgb_to_rgbx(const uint8_t* rgb, int pixels, uint8_t* rgbx) {
  if (pixels < kLanes) return kScalarKernels.rgb_to_rgbx(rgb, pixels, rgbx);
  const auto put = [&](int x) {
    const uint8x16x3_t from = vld3q_u8(rgb + ptrdiff_t(x) * 3);
    const uint8x16x4_t pixels{{from.val[0], from.val[1], from.val[2], vdupq_n_u8(0)}};
    vst4q_u8(rgbx + ptrdiff_t(x) * kPixelBytes, pixels);
  };
  for (int x = 0; x + kLanes < pixels; x += kLanes) put(x);
  put(pixels - kLanes);  // may repeat some
}

void resample_x(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                size_t dst_stride, int plane_stride) {
  if (plane_stride) return kScalarKernels.resample_x(src, src_stride, rows, table, dst, dst_stride, plane_stride);
  const Widen widen;
  const int last = last_tap(table);
  for (; rows >= 4; src += 4 * src_stride, dst += 4 * dst_stride, rows -= 4) {
    for (int x = 0; x < table.count; ++x) resample_x_four(widen, src, src_stride, table, x, last, dst, dst_stride);
  }
  for (; rows > 0; --rows, src += src_stride, dst += dst_stride) {
    for (int x = 0; x < table.count; x += 4) resample_x_row(widen, src, table, x, last, dst);
  }
}

void resample_y(const uint8_t* src, size_t src_stride, const TableView& table, int index, int bytes, uint8_t* dst) {
  const Widen widen;
  const int taps = table.taps[index];
  const int32_t* weight = table.weight + size_t(index) * size_t(table.taps_stride);
  for (int x = 0; x < bytes; x += kLanes) {
    int32x4_t sums[4];
    for (int32x4_t& sum : sums) sum = vdupq_n_s32(kWeightHalf);
    const uint8_t* from = src + x;
    for (int t = 0; t < taps; ++t, from += src_stride) {
      const uint8x16_t row = vld1q_u8(from);
      for (int i = 0; i < 4; ++i) sums[i] = vmlaq_n_s32(sums[i], widen(row, i), weight[t]);
    }
    const uint8x16_t made = bytes_of(sums);
    if (bytes - x >= kLanes) {
      vst1q_u8(dst + x, made);
    } else {
      uint8_t tail[kLanes];
      vst1q_u8(tail, made);
      __builtin_memcpy(dst + x, tail, size_t(bytes - x));
    }
  }
}

}  // namespace

const Kernels kNeonKernels{"neon",         false,
                           rgb_to_rgbx,    resample_x,
                           resample_y,     store_normalised_neon,
                           &kNeonEffects,  make_texture_scalar,
                           run_warp_neon,  run_tensor_warp_neon,
                           &kNeonMixing,   &kNeonFloats,
                           &kScalarOpencv, &kNeonBlocks};

}  // namespace headrace
