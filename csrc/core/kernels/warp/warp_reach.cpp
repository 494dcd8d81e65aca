// The part of an image that a warp reads.
//
// Note [corners]: positions are computed by sums, products and, in a perspective, quotients. Each of these, rounded, is
// monotonic, so the positions of an affine map rise or fall along a row and along a column on every path, as long as no
// fixed-point number overflows: the window's corners hold the extremes. A perspective maps the window into the
// quadrilateral of its corners if the divisor keeps its sign; roundings then move positions by less than a pixel if no
// term is a million times larger than the divisor.
#include "core/kernels/warp/warp_reach.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace headrace {
namespace {

constexpr double kMostQuotient = 1e6;

/// The extremes of the window's positions along each axis.
struct Extremes {
  double left, right, top, bottom;

  void add(WarpPosition at) {
    left = std::min(left, at.x);
    right = std::max(right, at.x);
    top = std::min(top, at.y);
    bottom = std::max(bottom, at.y);
  }
  bool known() const { return std::isfinite(right - left) && std::isfinite(bottom - top); }
};

template <class At>
Extremes of_corners(Box window, At at) {
  const int right = window.x + window.width - 1, bottom = window.y + window.height - 1;
  const WarpPosition first = at(window.x, window.y);
  Extremes all{first.x, first.x, first.y, first.y};
  for (const WarpPosition corner : {at(right, window.y), at(window.x, bottom), at(right, bottom)}) {
    // A comparison would not detect NaN.
    if (!std::isfinite(corner.x + corner.y)) return {NAN, NAN, NAN, NAN};
    all.add(corner);
  }
  return all;
}

WarpPosition fixed_position(const FixedMatrix& fixed, int x, int y) {
  const auto sum = [x, y](uint32_t a, uint32_t b, uint32_t c) {
    const auto exact = [](uint32_t number) { return int64_t{static_cast<int32_t>(number)}; };
    const int64_t at = exact(a) * x + exact(b) * y + exact(c);
    return at == static_cast<int32_t>(at) ? static_cast<double>(at) / 65536.0 : static_cast<double>(NAN);
  };
  return {sum(fixed.a[0], fixed.a[1], fixed.a[2]), sum(fixed.a[3], fixed.a[4], fixed.a[5])};
}

double added_up(double from, double step, int times) {
  for (int i = 0; i < times; ++i) from += step;
  return from;
}

WarpPosition added_up_position(const double* a, int x, int y) {
  return {added_up(added_up(a[2] + a[1] * 0.5 + a[0] * 0.5, a[1], y), a[0], x),
          added_up(added_up(a[5] + a[4] * 0.5 + a[3] * 0.5, a[4], y), a[3], x)};
}

/// Whether Note [corners] holds for a perspective and this window.
bool keeps_its_sign(const Warp& warp, Box window) {
  const double* a = warp.a;
  double least = INFINITY, most = -INFINITY, largest = 0;
  for (const double u : {window.x + 0.5, window.x + window.width - 0.5}) {
    for (const double v : {window.y + 0.5, window.y + window.height - 0.5}) {
      const double depth = plane_at(a[6], u, a[7], v, 1.0);
      least = std::min(least, depth);
      most = std::max(most, depth);
      for (const double* row : {a, a + 3}) {
        largest = std::max(largest, std::fabs(row[0]) * u + std::fabs(row[1]) * v + std::fabs(row[2]));
      }
      largest = std::max(largest, std::fabs(a[6]) * u + std::fabs(a[7]) * v + 1.0);
    }
  }
  return least * most > 0 && largest < kMostQuotient * std::min(std::fabs(least), std::fabs(most));
}

std::optional<Extremes> extremes_of(const WarpJob& job, Box window) {
  const Warp& warp = job.warp;
  if (warp.perspective && !keeps_its_sign(warp, window)) return std::nullopt;
  const Extremes found = of_corners(window, [&](int x, int y) {
    if (job.path == WarpPath::kFixed) return fixed_position(job.fixed, x, y);
    if (job.path == WarpPath::kAddedUp) return added_up_position(warp.a, x, y);
    return warp_position(warp, x, y);
  });
  return found.known() ? std::optional(found) : std::nullopt;
}

/// The first pixel read along an axis, and their number.
struct Read {
  int begin, count;
};

Read read_along(double low, double high, int size, const Warp& warp) {
  const bool nearest = warp.filter == Filter::kNearest;
  const int before = (warp.filter == Filter::kBicubic ? 1 : 0) + (warp.perspective ? 1 : 0);
  const int after = (nearest ? 0 : 1) + before;
  const double shift = nearest ? 0.0 : 0.5;
  const auto within = [size](double at) { return static_cast<int>(std::clamp(at, 0.0, static_cast<double>(size))); };
  const int begin = within(std::floor(low - shift) - before), end = within(std::floor(high - shift) + after + 1);
  return begin < end ? Read{begin, end - begin} : Read{0, 1};  // nothing but fill: a decoder still needs a box
}

}  // namespace

Box warp_reach(const WarpJob& job, Size in, Box window) {
  const std::optional<Extremes> extremes = extremes_of(job, window);
  if (!extremes) return whole_image(in);
  const Read x = read_along(extremes->left, extremes->right, in.width, job.warp);
  const Read y = read_along(extremes->top, extremes->bottom, in.height, job.warp);
  return {x.begin, y.begin, x.count, y.count};
}

}  // namespace headrace
