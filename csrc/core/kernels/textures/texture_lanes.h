// All 13 channels of an image, by the operations of headrace._recipe.arithmetic.textures.
// The file of each instruction set defines kLanes and includes this header; all definitions are internal to that file.
#pragma once

#include <cstring>

#include "core/kernels/textures/band_lanes.h"

namespace headrace {
namespace {

/// The luma of every pixel, 0 after the rows.
void make_luma(const TextureView& texture, const TextureScratchView& scratch) {
  const double *red = texture.luma, *green = red + 256, *blue = green + 256;
  const uint8_t* pixel = scratch.pixels;
  for (int y = 0; y < texture.size.height; ++y) {
    double* to = scratch.luma + ptrdiff_t{y} * scratch.luma_stride;
    for (int x = 0; x < texture.size.width; ++x, pixel += kPixelBytes) {
      to[x] = red[pixel[0]] + green[pixel[1]] + blue[pixel[2]];
    }
  }
}

/// Replaces ratios t by the function f(t) of CIE LAB.
[[gnu::always_inline]] inline void bend(Lanes& ratio, const double* roots) {
  constexpr double kDelta = 6.0 / 29, kSlope = 1 / (3 * kDelta * kDelta), kEdge = kDelta * kDelta * kDelta;
  const Lanes at = ratio * kRootStarts;
  Lanes root;
  for (int lane = 0; lane < kLanes; ++lane) root[lane] = roots[static_cast<int>(at[lane])];
  for (int round = 0; round < 2; ++round) {
    const Lanes cube = root * root * root;
    root = root * (cube + ratio * 2) / (cube * 2 + ratio);
  }
  const Lanes straight = ratio * kSlope + 4.0 / 29;
  ratio = ratio > kEdge ? root : straight;
}

/// L / 100, a / 128 and b / 128 of a row, in three rows `stride` apart.
void lab_row(const TextureView& texture, const uint8_t* pixel, float* to, int stride) {
  constexpr double kWhite[3] = {0.95047, 1.0, 1.08883};
  constexpr double kToXyz[3][3] = {{0.412453 / kWhite[0], 0.357580 / kWhite[0], 0.180423 / kWhite[0]},
                                   {0.212671 / kWhite[1], 0.715160 / kWhite[1], 0.072169 / kWhite[1]},
                                   {0.019334 / kWhite[2], 0.119193 / kWhite[2], 0.950227 / kWhite[2]}};
  for (int x = 0; x < texture.size.width; x += kLanes, pixel += kLanes * kPixelBytes, to += kLanes) {
    Lanes red, green, blue;
    for (int lane = 0; lane < kLanes; ++lane) {
      red[lane] = texture.linear[pixel[lane * kPixelBytes]];
      green[lane] = texture.linear[pixel[lane * kPixelBytes + 1]];
      blue[lane] = texture.linear[pixel[lane * kPixelBytes + 2]];
    }
    Lanes xyz[3];
    for (int i = 0; i < 3; ++i) {
      xyz[i] = red * kToXyz[i][0] + green * kToXyz[i][1] + blue * kToXyz[i][2];
      bend(xyz[i], texture.roots);
    }
    const Lanes l = xyz[1] * 1.16 - 0.16, a = (xyz[0] - xyz[1]) * 500 / 128, b = (xyz[1] - xyz[2]) * 200 / 128;
    *reinterpret_cast<LooseFloats*>(to) = __builtin_convertvector(l, FloatLanes);
    *reinterpret_cast<LooseFloats*>(to + stride) = __builtin_convertvector(a, FloatLanes);
    *reinterpret_cast<LooseFloats*>(to + 2 * stride) = __builtin_convertvector(b, FloatLanes);
  }
}

/// A row of the luma with its first and last pixel repeated.
const double* widened(const TextureScratchView& scratch, int y, int width, double* to) {
  const double* row = scratch.luma + ptrdiff_t{y} * scratch.luma_stride;
  to[0] = row[0];
  std::memcpy(to + 1, row, static_cast<size_t>(width) * sizeof(double));
  to[width + 1] = row[width - 1];
  return to;
}

/// The derivatives along x and y of row `y`, in two rows `stride` apart.
void sobel_row(const TextureView& texture, const TextureScratchView& scratch, int y, float* to, int stride) {
  const auto [width, height] = texture.size;
  const int row = texture_padded(width + 2);
  const double* above = widened(scratch, y > 0 ? y - 1 : 0, width, scratch.rows);
  const double* here = widened(scratch, y, width, scratch.rows + row);
  const double* below = widened(scratch, y + 1 < height ? y + 1 : y, width, scratch.rows + 2 * row);
  double* down = scratch.rows + 3 * row;
  for (int x = 0; x < width + 2; ++x) down[x] = above[x] + here[x] * 2 + below[x];
  for (int x = 0; x < width; ++x) {
    to[x] = static_cast<float>((down[x + 2] - down[x]) / 4);
    const double after = below[x] + below[x + 1] * 2 + below[x + 2],
                 before = above[x] + above[x + 1] * 2 + above[x + 2];
    to[stride + x] = static_cast<float>((after - before) / 4);
  }
}

/// Writes one row of each channel.
void store_rows(const float* const* rows, int width, const TextureTarget& target, uint8_t* to) {
  if (target.pixel_stride == sizeof(float)) {
    for (int c = 0; c < kTextureChannels; ++c, to += target.channel_stride) {
      std::memcpy(to, rows[c], static_cast<size_t>(width) * sizeof(float));
    }
  } else if (target.channel_stride == sizeof(float)) {
    for (int x = 0; x < width; ++x, to += target.pixel_stride) {
      float pixel[kTextureChannels];
      for (int c = 0; c < kTextureChannels; ++c) pixel[c] = rows[c][x];
      std::memcpy(to, pixel, sizeof(pixel));
    }
  } else {
    for (int x = 0; x < width; ++x, to += target.pixel_stride) {
      for (int c = 0; c < kTextureChannels; ++c)
        std::memcpy(to + c * target.channel_stride, rows[c] + x, sizeof(float));
    }
  }
}

void make_texture(const TextureView& texture, const TextureScratchView& scratch, const TextureTarget& target) {
  const auto [width, height] = texture.size;
  make_luma(texture, scratch);
  Bands(texture, scratch).make();
  const int row = texture_padded(width);
  const ptrdiff_t pixels = ptrdiff_t{width} * height;
  float* colours = scratch.channels + 5 * row;
  const float* rows[kTextureChannels];
  for (int c = 0; c < 3; ++c) rows[c] = colours + c * row;
  for (int c = 0; c < 5; ++c) rows[3 + c] = scratch.channels + c * row;
  for (int y = 0; y < height; ++y) {
    const uint8_t* pixel = scratch.pixels + ptrdiff_t{y} * width * kPixelBytes;
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) colours[c * row + x] = texture.unit[pixel[x * kPixelBytes + c]];
    }
    lab_row(texture, pixel, scratch.channels, row);
    sobel_row(texture, scratch, y, scratch.channels + 3 * row, row);
    for (int c = 0; c < 3; ++c) rows[8 + c] = texture.positions + c * pixels + ptrdiff_t{y} * width;
    for (int c = 0; c < 2; ++c) rows[11 + c] = scratch.bands + (ptrdiff_t{c} * height + y) * row;
    store_rows(rows, width, target, target.base + y * target.row_stride);
  }
}

}  // namespace
}  // namespace headrace
