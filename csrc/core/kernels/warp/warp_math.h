// PIL.Image.transform of single pixels, AFFINE and PERSPECTIVE, equal to Pillow's to the bit; shared by the CPU loops
// and by the CUDA kernel.
//
// Note [paths]: Pillow computes an affine warp with the nearest filter in one of two ways. If the corners of the output
// fall within 32768 pixels of the origin it counts in 16.16 fixed point; otherwise, and where there is neither rotation
// nor shear, it accumulates doubles along the rows and the columns. All other warps are computed separately for each
// pixel, in doubles. Products are fused with sums as Note [Pillow's sums] says.
#pragma once

#include <cstdint>

#include "core/kernels/effects/effect_math.h"
#include "core/plan/plan.h"

namespace headrace {

/// A position in the source image, in pixels; the centre of the first pixel is (0.5, 0.5).
struct WarpPosition {
  double x, y;
};

/// How a warp is computed, see Note [paths].
enum class WarpPath : uint8_t { kEachPixel, kFixed, kAddedUp };

/// a * b + c * d + e; which of two products Pillow's compilers fuse with the other was read in its wheel for Arm.
HEADRACE_HD static inline double plane_at(double a, double b, double c, double d, double e) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(pillow_sum(__dmul_rn(c, d), a, b), e);
#else
  return pillow_sum(c * d, a, b) + e;
#endif
}

/// Where the warp's pixel at column x and row y of the output comes from.
HEADRACE_HD static inline WarpPosition warp_position(const Warp& warp, int x, int y) {
  const double u = x + 0.5, v = y + 0.5;
  const double* a = warp.a;
  const WarpPosition position{plane_at(a[0], u, a[1], v, a[2]), plane_at(a[3], u, a[4], v, a[5])};
  if (!warp.perspective) return position;
  const double depth = plane_at(a[6], u, a[7], v, 1.0);
  return {position.x / depth, position.y / depth};
}

/// Whether a position is in [0, size). False for not a number.
HEADRACE_HD static inline bool within(double at, int size) { return at >= 0.0 && at < size; }

/// The position that Pillow's nearest pixel takes for one that is not a number: 0 on 64-bit Arm, whose conversion to
/// int gives that, and none on x86, where it gives the least int.
HEADRACE_HD static inline double nearest_position(double at) { return kPillowFuses && at != at ? 0.0 : at; }

/// Whether Pillow treats a position as outside [0, size). False for not a number.
HEADRACE_HD static inline bool beyond(double at, int size) { return at < 0.0 || at >= size; }

/// The pixel before a position that is at most half a pixel outside the image, and the distance from it.
struct WarpTap {
  int first;
  double part;
};
HEADRACE_HD static inline WarpTap warp_tap(double at) {
  const double shifted = at - 0.5;
  const int first = shifted < 0.0 ? -1 : static_cast<int>(shifted);
  return {first, shifted - first};
}

HEADRACE_HD static inline int clamp_to_axis(int at, int size) { return at < 0 ? 0 : at < size ? at : size - 1; }

HEADRACE_HD static inline double linear(double a, double b, double part) { return pillow_sum(a, b - a, part); }

HEADRACE_HD static inline double cubic(double v1, double v2, double v3, double v4, double part) {
  const double p2 = -v1 + v3, p3 = 2 * (v1 - v2) + v3 - v4, p4 = -v1 + v2 - v3 + v4;
  return pillow_sum(v2, part, pillow_sum(p2, part, pillow_sum(p3, part, p4)));
}

HEADRACE_HD static inline int truncated_byte(double value) {
  return value <= 0.0 ? 0 : value >= 255.0 ? 255 : static_cast<int>(value);
}

/// The bilinear pixel at a position in the image. `pixel(x, y)`: its packed pixel at a column and row inside it.
template <class Pixel>
HEADRACE_HD static inline uint32_t bilinear_pixel(WarpPosition position, int width, int height, Pixel pixel) {
  const WarpTap x = warp_tap(position.x), y = warp_tap(position.y);
  const int left = clamp_to_axis(x.first, width), right = clamp_to_axis(x.first + 1, width);
  const int top = clamp_to_axis(y.first, height), bottom = clamp_to_axis(y.first + 1, height);
  const uint32_t a = pixel(left, top), b = pixel(right, top), c = pixel(left, bottom), d = pixel(right, bottom);
  const auto mixed = [&](int shift) {
    const auto value = [shift](uint32_t of) { return static_cast<double>(of >> shift & 255); };
    return static_cast<int>(linear(linear(value(a), value(b), x.part), linear(value(c), value(d), x.part), y.part));
  };
  return pack_rgbx(mixed(0), mixed(8), mixed(16));
}

/// The bicubic pixel; otherwise as bilinear_pixel.
template <class Pixel>
HEADRACE_HD static inline uint32_t bicubic_pixel(WarpPosition position, int width, int height, Pixel pixel) {
  const WarpTap x = warp_tap(position.x), y = warp_tap(position.y);
  double row[4][3];
  for (int i = 0; i < 4; ++i) {
    const int at = clamp_to_axis(y.first - 1 + i, height);
    uint32_t taps[4];
    for (int j = 0; j < 4; ++j) taps[j] = pixel(clamp_to_axis(x.first - 1 + j, width), at);
    for (int c = 0; c < 3; ++c) {
      const auto value = [c](uint32_t of) { return static_cast<double>(of >> 8 * c & 255); };
      row[i][c] = cubic(value(taps[0]), value(taps[1]), value(taps[2]), value(taps[3]), x.part);
    }
  }
  const auto mixed = [&](int c) { return truncated_byte(cubic(row[0][c], row[1][c], row[2][c], row[3][c], y.part)); };
  return pack_rgbx(mixed(0), mixed(1), mixed(2));
}

/// The warp's pixel at column x and row y of the output, on WarpPath::kEachPixel. `pixel`: as for bilinear_pixel.
template <class Pixel>
HEADRACE_HD static inline uint32_t warped_pixel(const Warp& warp, int x, int y, int width, int height, Pixel pixel) {
  const WarpPosition position = warp_position(warp, x, y);
  if (warp.filter == Filter::kNearest) {
    const double column = nearest_position(position.x), row = nearest_position(position.y);
    if (!within(column, width) || !within(row, height)) return warp.fill;
    return pixel(static_cast<int>(column), static_cast<int>(row));
  }
  if (beyond(position.x, width) || beyond(position.y, height)) return warp.fill;
  if (position.x != position.x || position.y != position.y) return 0;  // the byte that not a number converts to
  return warp.filter == Filter::kBilinear ? bilinear_pixel(position, width, height, pixel)
                                          : bicubic_pixel(position, width, height, pixel);
}

/// An affine matrix in 16.16 fixed point. Sums wrap, as Pillow's do in a processor.
struct FixedMatrix {
  uint32_t a[6];
  /// The position in the image, column then row, that output (0, y) shows.
  HEADRACE_HD uint32_t x(int y) const { return a[2] + static_cast<uint32_t>(y) * a[1]; }
  HEADRACE_HD uint32_t y(int y) const { return a[5] + static_cast<uint32_t>(y) * a[4]; }
};

/// A warp, and values derived from it once for all of its pixels.
struct WarpJob {
  Warp warp;
  WarpPath path{};
  FixedMatrix fixed{};
};

/// The warp, with how Pillow computes it.
WarpJob warp_job(const Warp& warp);

/// The column or row that contains a position; -1: outside [0, size).
HEADRACE_HD static inline int containing_pixel(double at, int size) {
  return within(at, size) ? static_cast<int>(at) : -1;
}

/// Calls store(x, pixel) for outputs [begin, end) of row y, in order. `width`, `height`: those of the image; `pixel`:
/// as for bilinear_pixel.
template <class Pixel, class Store>
HEADRACE_HD static inline void warp_row(const WarpJob& job, int y, int begin, int end, int width, int height,
                                        Pixel pixel, Store store) {
  const Warp warp = job.warp;  // a copy: a compiler must assume that stores of bytes change the job
  const double* a = warp.a;
  const auto put = [&](int x, int column, int row) {
    const bool inside = static_cast<uint32_t>(column) < static_cast<uint32_t>(width) &&
                        static_cast<uint32_t>(row) < static_cast<uint32_t>(height);
    store(x, inside ? pixel(column, row) : warp.fill);
  };
  if (job.path == WarpPath::kEachPixel) {
    for (int x = begin; x < end; ++x) store(x, warped_pixel(warp, x, y, width, height, pixel));
  } else if (job.path == WarpPath::kFixed) {
    const FixedMatrix fixed = job.fixed;
    uint32_t u = fixed.x(y) + static_cast<uint32_t>(begin) * fixed.a[0];
    uint32_t v = fixed.y(y) + static_cast<uint32_t>(begin) * fixed.a[3];
    for (int x = begin; x < end; ++x) {
      put(x, static_cast<int32_t>(u) >> 16, static_cast<int32_t>(v) >> 16);
      u += fixed.a[0];
      v += fixed.a[3];
    }
  } else {
    double u = a[2] + a[1] * 0.5 + a[0] * 0.5, v = a[5] + a[4] * 0.5 + a[3] * 0.5;  // halves are exact
    for (int i = 0; i < y; ++i) {
      u += a[1];
      v += a[4];
    }
    for (int x = 0; x < end; ++x) {
      if (x >= begin) put(x, containing_pixel(u, width), containing_pixel(v, height));
      u += a[0];
      v += a[3];
    }
  }
}

}  // namespace headrace
