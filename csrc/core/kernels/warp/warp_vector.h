// Warps in blocks of outputs. The file of each instruction set includes this header; all definitions are internal to
// that file.
#pragma once

#include <limits>

#include "core/kernels/warp/warp_loops.h"
#include "core/kernels/warp/warp_mix.h"
#include "core/kernels/warp/warp_nearest.h"

namespace headrace {
namespace {

template <bool kPerspective>
void each_pixel_row(const Warp& warp, int y, Outputs made, const Picture& picture, WarpBlock& block, uint8_t* to) {
  for (int x = made.begin; x < made.end; x += kBlock) {
    const int count = std::min(kBlock, made.end - x);
    if (map_to_source<kPerspective>(warp, x, y, picture.size, block)) {
      if (warp.filter == Filter::kNearest) {
        find_nearest(block, picture, count);
      } else if (warp.filter == Filter::kBilinear) {
        mix_bilinear(block, picture, count);
      } else {
        mix_bicubic(block, picture, count);
      }
    }
    store(block, count, to + x * kPixelBytes);
  }
}

inline void run_warp(const WarpJob& given, const uint8_t* from, Size in, Box window, uint8_t* to) {
  // Indices of pixels are 32 bits wide.
  if (static_cast<uint64_t>(in.width) * static_cast<uint64_t>(in.height) > std::numeric_limits<uint32_t>::max()) {
    return run_warp_scalar(given, from, in, window, to);
  }
  const WarpJob job = given;  // a copy: a compiler must assume that stores of bytes change the job
  const Warp& warp = job.warp;
  const Picture picture{from, in};
  const double* a = warp.a;
  if (job.path == WarpPath::kAddedUp && a[1] == 0 && a[3] == 0) return run_scaled(warp, picture, window, to);
  WarpBlock block{};
  double u = a[2] + a[1] * 0.5 + a[0] * 0.5, v = a[5] + a[4] * 0.5 + a[3] * 0.5;
  const Outputs made{window.x, window.x + window.width};
  const size_t row_bytes = static_cast<size_t>(warp.out.width) * kPixelBytes;
  for (int y = 0; y < window.y + window.height; ++y, u += a[1], v += a[4], to += row_bytes) {
    if (y < window.y) continue;
    if (job.path == WarpPath::kAddedUp) {
      added_up_row(warp, u, v, made, picture, to);
    } else if (job.path == WarpPath::kFixed) {
      fixed_row(job, y, made, picture, to);
    } else if (warp.perspective) {
      each_pixel_row<true>(warp, y, made, picture, block, to);
    } else {
      each_pixel_row<false>(warp, y, made, picture, block, to);
    }
  }
}

}  // namespace
}  // namespace headrace
