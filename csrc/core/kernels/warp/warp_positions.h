// The positions in the source image of a block of outputs, in doubles, and the nearest pixels; pixels by their indices.
// Written so that compilers vectorise all loops except those that load pixels. The file of each instruction set
// includes this header; all definitions are internal to that file.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/kernels/warp/warp_math.h"

namespace headrace {
namespace {

constexpr int kBlock = 32;  // outputs

struct Picture {
  const uint8_t* pixels;  // RGBX, rows without gaps; fewer than 2^32 pixels
  Size size;

  const uint8_t* at(uint32_t number) const { return pixels + static_cast<size_t>(number) * kPixelBytes; }
  uint32_t number(int x, int y) const {
    return static_cast<uint32_t>(y) * static_cast<uint32_t>(size.width) + static_cast<uint32_t>(x);
  }
};

/// Neighbouring outputs of one row of a warp.
struct WarpBlock {
  alignas(64) double x[kBlock], y[kBlock];            // positions in the image, then the distances from taps
  alignas(64) uint32_t inside[kBlock];                // 1: the position is inside the image; 0: it counts as (0, 0)
  alignas(64) uint32_t pixel[kBlock], other[kBlock];  // of outputs inside, and of those that are not
};

/// Writes one pixel `count` times.
inline void fill(uint8_t* to, int count, uint32_t pixel) {
  for (int i = 0; i < count; ++i, to += kPixelBytes) std::memcpy(to, &pixel, kPixelBytes);
}

/// Copies a block's pixels, the first `count` of them.
inline void copy_block(const uint32_t* from, int count, uint8_t* to) {
  if (count == kBlock) {  // of constant length: some registers instead of a call
    std::memcpy(to, from, kBlock * kPixelBytes);
  } else {
    std::memcpy(to, from, static_cast<size_t>(count) * kPixelBytes);
  }
}

/// Copies the pixels with these indices.
inline void gather(const Picture& picture, const uint32_t* numbers, int count, uint8_t* to) {
  const auto one = [&](int i) { std::memcpy(to + i * kPixelBytes, picture.at(numbers[i]), kPixelBytes); };
  if (count == kBlock) {
    for (int i = 0; i < kBlock; ++i) one(i);
  } else {
    for (int i = 0; i < count; ++i) one(i);
  }
}

/// Computes the positions in the source image of the outputs of row y, starting at column x. Returns whether any of
/// them is inside the image; if not, block.other holds all outputs.
template <bool kPerspective>
inline bool map_to_source(const Warp& warp, int x, int y, Size size, WarpBlock& block) {
  const double* a = warp.a;
  const double v = y + 0.5, width = size.width, height = size.height;
  for (int i = 0; i < kBlock; ++i) {
    const double u = (x + i) + 0.5;
    block.x[i] = plane_at(a[0], u, a[1], v, a[2]);
    block.y[i] = plane_at(a[3], u, a[4], v, a[5]);
    if (kPerspective) {
      const double depth = plane_at(a[6], u, a[7], v, 1.0);
      block.x[i] /= depth;
      block.y[i] /= depth;
    }
  }
  uint32_t all = 0;
  const bool nearest = warp.filter == Filter::kNearest;
  const uint32_t none = nearest ? warp.fill : 0;  // at a position that is not a number
  for (int i = 0; i < kBlock; ++i) {
    const double px = nearest ? nearest_position(block.x[i]) : block.x[i],
                 py = nearest ? nearest_position(block.y[i]) : block.y[i];
    const bool inside = (px >= 0.0) & (px < width) & (py >= 0.0) & (py < height);
    const bool beyond = (px < 0.0) | (px >= width) | (py < 0.0) | (py >= height);
    block.inside[i] = inside;
    all |= block.inside[i];
    block.other[i] = beyond ? warp.fill : none;
    block.x[i] = inside ? px : 0.0;
    block.y[i] = inside ? py : 0.0;
  }
  return all != 0;
}

/// Finds block.pixel, the nearest pixels.
inline void find_nearest(WarpBlock& block, const Picture& picture, int count) {
  alignas(64) uint32_t numbers[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    numbers[i] = picture.number(static_cast<int>(block.x[i]), static_cast<int>(block.y[i]));
  }
  gather(picture, numbers, count, reinterpret_cast<uint8_t*>(block.pixel));
}

/// Stores block.pixel where inside, else block.other.
inline void store(WarpBlock& block, int count, uint8_t* to) {
  for (int i = 0; i < kBlock; ++i) block.other[i] = block.inside[i] ? block.pixel[i] : block.other[i];
  copy_block(block.other, count, to);
}

}  // namespace
}  // namespace headrace
