// The filters of warps, bilinear and bicubic, for a block of outputs; see warp_positions.h. Taps are bytes, so their
// differences are computed as integers, which is exact, as it would be in doubles.
#pragma once

#include "core/kernels/warp/warp_positions.h"

namespace headrace {
namespace {

/// The taps before the positions of a block.
struct Taps {
  alignas(64) int32_t column[kBlock], row[kBlock];  // -1 at the border
};

/// Finds the taps; block.x and block.y become the distances from them.
inline void find_taps(WarpBlock& block, Taps& taps) {
  for (int i = 0; i < kBlock; ++i) {
    const double x = block.x[i] - 0.5, y = block.y[i] - 0.5;
    taps.column[i] = static_cast<int>(x) - (x < 0.0 ? 1 : 0);
    taps.row[i] = static_cast<int>(y) - (y < 0.0 ? 1 : 0);
    block.x[i] = x - taps.column[i];
    block.y[i] = y - taps.row[i];
  }
}

/// Copies the pixels, starting at `column`, of the row that begins with pixel `begin`, clamped to the image.
template <int kTaps>
inline void load_taps(const Picture& picture, uint32_t begin, int column, uint32_t* taps) {
  const int width = picture.size.width;
  if (column >= 0 && column <= width - kTaps) {
    std::memcpy(taps, picture.at(begin + static_cast<uint32_t>(column)), kTaps * kPixelBytes);
  } else {
    for (int i = 0; i < kTaps; ++i) {
      std::memcpy(taps + i, picture.at(begin + static_cast<uint32_t>(clamp_to_axis(column + i, width))), kPixelBytes);
    }
  }
}

inline int channel(uint32_t pixel, int number) { return static_cast<int>(pixel >> 8 * number & 255); }

/// Finds block.pixel.
inline void mix_bilinear(WarpBlock& block, const Picture& picture, int count) {
  Taps taps;
  alignas(64) uint32_t begin[2][kBlock], above[2 * kBlock], below[2 * kBlock];
  find_taps(block, taps);
  for (int i = 0; i < kBlock; ++i) {
    begin[0][i] = picture.number(0, std::max(taps.row[i], 0));
    begin[1][i] = picture.number(0, std::min(taps.row[i] + 1, picture.size.height - 1));
  }
  for (int i = 0; i < count; ++i) {
    load_taps<2>(picture, begin[0][i], taps.column[i], above + 2 * i);
    load_taps<2>(picture, begin[1][i], taps.column[i], below + 2 * i);
  }
  for (int i = 0; i < kBlock; ++i) {
    const uint32_t a = above[2 * i], b = above[2 * i + 1], c = below[2 * i], d = below[2 * i + 1];
    block.pixel[i] = 0;
    for (int number = 0; number < 3; ++number) {
      const int left = channel(a, number), low = channel(c, number);
      const double top = pillow_sum(static_cast<double>(left), channel(b, number) - left, block.x[i]);
      const double bottom = pillow_sum(static_cast<double>(low), channel(d, number) - low, block.x[i]);
      block.pixel[i] |= static_cast<uint32_t>(static_cast<int>(linear(top, bottom, block.y[i]))) << 8 * number;
    }
  }
}

/// cubic() of four bytes.
inline double cubic_of_bytes(int v1, int v2, int v3, int v4, double part) {
  const double p2 = v3 - v1, p3 = 2 * (v1 - v2) + v3 - v4, p4 = v2 - v1 - v3 + v4;
  return pillow_sum(static_cast<double>(v2), part, pillow_sum(p2, part, pillow_sum(p3, part, p4)));
}

/// Finds block.pixel.
inline void mix_bicubic(WarpBlock& block, const Picture& picture, int count) {
  Taps taps;
  alignas(64) uint32_t pixels[4][4 * kBlock];
  alignas(64) double mixed[3][4][kBlock];
  find_taps(block, taps);
  for (int i = 0; i < count; ++i) {
    for (int r = 0; r < 4; ++r) {
      const uint32_t begin = picture.number(0, clamp_to_axis(taps.row[i] - 1 + r, picture.size.height));
      load_taps<4>(picture, begin, taps.column[i] - 1, pixels[r] + 4 * i);
    }
  }
  for (int r = 0; r < 4; ++r) {
    for (int i = 0; i < kBlock; ++i) {
      const uint32_t* of = pixels[r] + 4 * i;
      for (int number = 0; number < 3; ++number) {
        mixed[number][r][i] = cubic_of_bytes(channel(of[0], number), channel(of[1], number), channel(of[2], number),
                                             channel(of[3], number), block.x[i]);
      }
    }
  }
  for (int i = 0; i < kBlock; ++i) {
    block.pixel[i] = 0;
    for (int number = 0; number < 3; ++number) {
      const auto& rows = mixed[number];
      double value = cubic(rows[0][i], rows[1][i], rows[2][i], rows[3][i], block.y[i]);
      value = value > 0.0 ? value : 0.0;
      value = value < 255.0 ? value : 255.0;
      block.pixel[i] |= static_cast<uint32_t>(static_cast<int>(value)) << 8 * number;
    }
  }
}

}  // namespace
}  // namespace headrace
