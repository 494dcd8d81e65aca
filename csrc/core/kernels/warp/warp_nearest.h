// Affine warps with the nearest filter: Pillow's fixed-point numbers, and its accumulated doubles. See
// warp_positions.h.
#pragma once

#include "core/kernels/warp/warp_positions.h"

namespace headrace {
namespace {

/// Outputs [begin, end) of a row.
struct Outputs {
  int begin, end;
};

inline int64_t quotient_up(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

/// The outputs x for which start + x * step is in [0, limit).
inline Outputs outputs_within(int64_t start, int64_t step, int64_t limit, Outputs of) {
  if (step == 0) return start >= 0 && start < limit ? of : Outputs{0, 0};
  if (step < 0) {
    start = limit - 1 - start;
    step = -step;
  }
  const auto begin = static_cast<int>(std::clamp<int64_t>(quotient_up(-start, step), of.begin, of.end));
  const auto end = static_cast<int>(std::clamp<int64_t>(quotient_up(limit - start, step), begin, of.end));
  return {begin, end};
}

/// Whether `times` steps from a number in fixed point stay within 32 bits.
inline bool stays_exact(uint32_t from, uint32_t step, int times) {
  const int64_t last = int64_t{static_cast<int32_t>(from)} + int64_t{static_cast<int32_t>(step)} * times;
  return last == static_cast<int32_t>(last);
}

/// Row y of an image in fixed point; `to`: memory of the row's first output, even if that is not made.
inline void fixed_row(const WarpJob& job, int y, Outputs made, const Picture& picture, uint8_t* to) {
  const uint32_t du = job.fixed.a[0], dv = job.fixed.a[3], first = static_cast<uint32_t>(made.begin);
  const uint32_t u = job.fixed.x(y) + first * du, v = job.fixed.y(y) + first * dv;
  const int width = made.end - made.begin;
  if (!stays_exact(u, du, width - 1) || !stays_exact(v, dv, width - 1)) {
    return warp_row(
        job, y, made.begin, made.end, picture.size.width, picture.size.height,
        [&](int column, int row) {
          uint32_t pixel;
          std::memcpy(&pixel, picture.at(picture.number(column, row)), kPixelBytes);
          return pixel;
        },
        [&](int x, uint32_t pixel) { std::memcpy(to + x * kPixelBytes, &pixel, kPixelBytes); });
  }
  const auto within = [](uint32_t from, uint32_t step, int size, Outputs of) {
    return outputs_within(static_cast<int32_t>(from), static_cast<int32_t>(step), int64_t{size} << 16, of);
  };
  to += made.begin * kPixelBytes;  // below, made.begin counts as 0
  const auto [begin, end] = within(v, dv, picture.size.height, within(u, du, picture.size.width, {0, width}));
  fill(to, begin, job.warp.fill);
  for (int x = begin; x < end; x += kBlock) {
    const uint32_t block_u = u + static_cast<uint32_t>(x) * du, block_v = v + static_cast<uint32_t>(x) * dv;
    alignas(64) uint32_t numbers[kBlock];
    for (uint32_t i = 0; i < kBlock; ++i) {
      const uint32_t column = (block_u + i * du) >> 16, row = (block_v + i * dv) >> 16;
      numbers[i] = row * static_cast<uint32_t>(picture.size.width) + column;
    }
    gather(picture, numbers, std::min(kBlock, end - x), to + x * kPixelBytes);
  }
  fill(to + end * kPixelBytes, width - end, job.warp.fill);
}

/// One after another, because each sum depends on the previous one.
inline void added_up_row(const Warp& warp, double u, double v, Outputs made, const Picture& picture, uint8_t* to) {
  for (int x = 0; x < made.end; ++x, u += warp.a[0], v += warp.a[3], to += kPixelBytes) {
    if (x < made.begin) continue;
    const bool inside = within(u, picture.size.width) && within(v, picture.size.height);
    const uint8_t* pixel = reinterpret_cast<const uint8_t*>(&warp.fill);
    std::memcpy(to, inside ? picture.at(picture.number(static_cast<int>(u), static_cast<int>(v))) : pixel, kPixelBytes);
  }
}

/// Columns of an image without rotation and shear: the same for all rows. They rise or fall along the row, so
/// those inside are adjacent.
struct SourceColumns {
  static constexpr int kMost = 256;
  uint32_t columns[kMost];
  int begin = 0, end = 0;   // of those inside
  bool consecutive = true;  // whether these rise by one each

  /// u: the position of the first one; becomes the one after the last.
  SourceColumns(double& u, double step, int count, int width) {
    for (int i = 0; i < count; ++i, u += step) {
      const int column = containing_pixel(u, width);
      if (column < 0) continue;
      if (end == 0) begin = i;
      end = i + 1;
      columns[i] = static_cast<uint32_t>(column);
      consecutive = consecutive && columns[i] - columns[begin] == static_cast<uint32_t>(i - begin);
    }
  }

  void copy(const uint8_t* row, uint8_t* to) const {
    if (begin == end) return;
    const auto from = [row](uint32_t column) { return row + static_cast<size_t>(column) * kPixelBytes; };
    if (consecutive) {
      std::memcpy(to + begin * kPixelBytes, from(columns[begin]), static_cast<size_t>(end - begin) * kPixelBytes);
    } else {
      for (int i = begin; i < end; ++i) std::memcpy(to + i * kPixelBytes, from(columns[i]), kPixelBytes);
    }
  }
};

/// Writes the outputs of a window of an image without rotation and shear; `to`: memory of the whole image.
inline void run_scaled(const Warp& warp, const Picture& picture, Box window, uint8_t* to) {
  const double* a = warp.a;
  const size_t row_bytes = static_cast<size_t>(warp.out.width) * kPixelBytes;
  double u = a[2] + a[1] * 0.5 + a[0] * 0.5, first_v = a[5] + a[4] * 0.5 + a[3] * 0.5;
  for (int x = 0; x < window.x; ++x) u += a[0];
  for (int y = 0; y < window.y; ++y) first_v += a[4];
  to += static_cast<size_t>(window.y) * row_bytes + static_cast<size_t>(window.x) * kPixelBytes;
  for (int x = 0; x < window.width; x += SourceColumns::kMost) {
    const int count = std::min(SourceColumns::kMost, window.width - x);
    const SourceColumns columns(u, a[0], count, picture.size.width);
    double v = first_v;
    uint8_t* at = to + x * kPixelBytes;
    for (int y = 0; y < window.height; ++y, v += a[4], at += row_bytes) {
      const int row = containing_pixel(v, picture.size.height);
      if (row < 0) {
        fill(at, count, warp.fill);
        continue;
      }
      fill(at, columns.begin, warp.fill);
      columns.copy(picture.at(picture.number(0, row)), at);
      fill(at + columns.end * kPixelBytes, count - columns.end, warp.fill);
    }
  }
}

}  // namespace
}  // namespace headrace
