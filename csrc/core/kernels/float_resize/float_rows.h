// The loops of a resize in float32, written so that compilers vectorise them. The file of each instruction set includes
// this header; all definitions are internal to that file.
#pragma once

#include "core/kernels/effects/tensor_math.h"
#include "core/kernels/float_resize/float_loops.h"

namespace headrace {
namespace {

inline constexpr int kAtOnce = kPixelBytes * kFloatRows;  // floats of a pixel in all rows

inline int least_of(int a, int b) { return a < b ? a : b; }

/// The number of taps of a window whose products are rounded before they are added, the first one included.
template <bool kFused>
inline int unfused_taps(int taps) {
  return kFused ? 1 + (taps - 1) / 4 * 4 : taps;
}

/// The weighted sums of kCount columns of floats, whose taps are `stride` floats apart.
template <bool kFused, int kCount>
inline void sum_taps(const float* from, size_t stride, int taps, const float* weight, float* to) {
  float sum[kCount];
  for (int i = 0; i < kCount; ++i) sum[i] = from[i] * weight[0];
  const int rounded = unfused_taps<kFused>(taps);
  for (int t = 1; t < rounded; ++t) {
    const float* row = from + static_cast<size_t>(t) * stride;
    for (int i = 0; i < kCount; ++i) sum[i] = sum[i] + row[i] * weight[t];
  }
  for (int t = rounded; t < taps; ++t) {
    const float* row = from + static_cast<size_t>(t) * stride;
    for (int i = 0; i < kCount; ++i) sum[i] = fused(row[i], weight[t], sum[i]);
  }
  for (int i = 0; i < kCount; ++i) to[i] = sum[i];
}

template <bool kFused>
void sum_along_x(const FloatTableView& table, const float* pixels, int rows, float* dst, size_t dst_stride) {
  for (int x = 0; x < table.count; ++x) {
    alignas(64) float made[kAtOnce];
    const float* from = pixels + static_cast<size_t>(table.start[x] - table.start[0]) * kAtOnce;
    const float* weight = table.weight + static_cast<size_t>(x) * static_cast<size_t>(table.taps_stride);
    sum_taps<kFused, kAtOnce>(from, kAtOnce, table.taps[x], weight, made);
    for (int y = 0; y < rows; ++y) {
      __builtin_memcpy(dst + static_cast<size_t>(y) * dst_stride + x * kPixelBytes, made + y * kPixelBytes,
                       kPixelBytes * sizeof(float));
    }
  }
}

void widen(const uint8_t* src, int count, float* dst) {
  for (int i = 0; i < count; ++i) dst[i] = static_cast<float>(static_cast<int>(src[i]));
}

void sum_x(const FloatTableView& table, const float* pixels, int rows, float* dst, size_t dst_stride) {
  table.fused ? sum_along_x<true>(table, pixels, rows, dst, dst_stride)
              : sum_along_x<false>(table, pixels, rows, dst, dst_stride);
}

void along_x(const uint8_t* src, size_t src_stride, int rows, const FloatTableView& table, float* dst,
             size_t dst_stride, float* scratch) {
  const int last = table.count - 1, begin = table.start[0], pixels = table.start[last] + table.taps[last] - begin;
  // The same pixel of all rows side by side, first as bytes: their conversion is then a single long loop.
  auto* const mixed = reinterpret_cast<uint8_t*>(scratch + static_cast<size_t>(pixels) * kAtOnce);
  for (int y = 0; y < kFloatRows; ++y) {
    const uint8_t* row = src + static_cast<size_t>(least_of(y, rows - 1)) * src_stride + begin * kPixelBytes;
    uint8_t* to = mixed + y * kPixelBytes;
    for (int x = 0; x < pixels; ++x) __builtin_memcpy(to + x * kAtOnce, row + x * kPixelBytes, kPixelBytes);
  }
  widen(mixed, pixels * kAtOnce, scratch);
  sum_x(table, scratch, rows, dst, dst_stride);
}

template <bool kFused>
void sum_along_y(const float* src, size_t src_stride, int taps, const float* weight, int count, float* dst) {
  constexpr int kColumns = 64;
  int x = 0;
  for (; x + kColumns <= count; x += kColumns) {
    sum_taps<kFused, kColumns>(src + x, src_stride, taps, weight, dst + x);
  }
  for (; x < count; x += kPixelBytes) sum_taps<kFused, kPixelBytes>(src + x, src_stride, taps, weight, dst + x);
}

void along_y(const float* src, size_t src_stride, const FloatTableView& table, int index, int count, float* dst) {
  const float* weight = table.weight + static_cast<size_t>(index) * static_cast<size_t>(table.taps_stride);
  table.fused ? sum_along_y<true>(src, src_stride, table.taps[index], weight, count, dst)
              : sum_along_y<false>(src, src_stride, table.taps[index], weight, count, dst);
}

void narrow(const float* src, int count, uint8_t* dst) {
  for (int i = 0; i < count; ++i) {
    const float value = src[i] > 0.0f ? (src[i] < 255.0f ? src[i] : 255.0f) : 0.0f;
    dst[i] = static_cast<uint8_t>(static_cast<int>(std::nearbyint(value)));
  }
}

}  // namespace
}  // namespace headrace
