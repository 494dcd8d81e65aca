// A slow reference for warps: each pixel by itself, as Pillow's documentation and borders define it.
#include "slow/slow_warp.h"

#include <algorithm>
#include <cmath>

#include "slow/slow_sum.h"

namespace headrace::test {
namespace {

struct Place {
  double x, y;
};

// Sums of doubles, step by step.
double added_up(double from, double step, int times) {
  for (int i = 0; i < times; ++i) from += step;
  return from;
}

// The place of an affine map with the nearest filter: its whole part counts.
Place nearest_position(const double (&a)[8], Size size, int u, int v) {
  double corner = 0;
  for (const int x : {0, size.width}) {
    for (const int y : {0, size.height}) {
      corner = std::max({corner, std::fabs(x * a[0] + y * a[1] + a[2]), std::fabs(x * a[3] + y * a[4] + a[5])});
    }
  }
  const double x0 = a[2] + a[0] / 2 + a[1] / 2, y0 = a[5] + a[3] / 2 + a[4] / 2;
  if ((a[1] == 0 && a[3] == 0) || corner >= 32768) {
    return {added_up(added_up(x0, a[1], v), a[0], u), added_up(added_up(y0, a[4], v), a[3], u)};
  }
  const auto fixed = [](double value) { return static_cast<long long>(std::floor(value * 65536 + 0.5)); };
  return {static_cast<double>(fixed(x0) + u * fixed(a[0]) + v * fixed(a[1])) / 65536,
          static_cast<double>(fixed(y0) + u * fixed(a[3]) + v * fixed(a[4])) / 65536};
}

Place place_of(const Warp& warp, Size size, int u, int v) {
  const auto& a = warp.a;
  if (!warp.perspective && warp.filter == Filter::kNearest) return nearest_position(a, size, u, v);
  const double x = u + 0.5, y = v + 0.5;
  const auto plane = [x, y](double by_x, double by_y, double rest) { return slow_sum(by_y * y, by_x, x) + rest; };
  const double depth = warp.perspective ? plane(a[6], a[7], 1) : 1;
  return {plane(a[0], a[1], a[2]) / depth, plane(a[3], a[4], a[5]) / depth};
}

double cubic(const double (&v)[4], double d) {
  const double p2 = -v[0] + v[2], p3 = 2 * (v[0] - v[1]) + v[2] - v[3], p4 = -v[0] + v[1] - v[2] + v[3];
  return slow_sum(v[1], d, slow_sum(p2, d, slow_sum(p3, d, p4)));
}

}  // namespace

Picture warped(const Warp& warp, Size size, const Picture& picture) {
  const Pixel fill{int(warp.fill & 255), int(warp.fill >> 8 & 255), int(warp.fill >> 16 & 255)};
  const auto value = [&](int x, int y, size_t c) {
    x = std::clamp(x, 0, size.width - 1);
    y = std::clamp(y, 0, size.height - 1);
    return static_cast<double>(picture[size_t(y) * size_t(size.width) + size_t(x)][c]);
  };
  Picture made;
  for (int v = 0; v < size.height; ++v) {
    for (int u = 0; u < size.width; ++u) {
      const Place at = place_of(warp, size, u, v);
      made.push_back(fill);
      if (!(at.x >= 0 && at.y >= 0 && at.x < size.width && at.y < size.height)) continue;
      const bool nearest = warp.filter == Filter::kNearest;
      const int x = int(std::floor(nearest ? at.x : at.x - 0.5)), y = int(std::floor(nearest ? at.y : at.y - 0.5));
      const double dx = at.x - 0.5 - x, dy = at.y - 0.5 - y;
      for (size_t c = 0; c < 3; ++c) {
        double sum = value(x, y, c);
        if (warp.filter == Filter::kBilinear) {
          const double above = slow_sum(sum, value(x + 1, y, c) - sum, dx);
          const double left = value(x, y + 1, c), below = slow_sum(left, value(x + 1, y + 1, c) - left, dx);
          sum = slow_sum(above, below - above, dy);
        } else if (!nearest) {
          double rows[4];
          for (int i = 0; i < 4; ++i) {
            const int row = y - 1 + i;
            rows[i] = cubic({value(x - 1, row, c), value(x, row, c), value(x + 1, row, c), value(x + 2, row, c)}, dx);
          }
          sum = cubic(rows, dy);
        }
        made.back()[c] = int(std::clamp(sum, 0.0, 255.0));
      }
    }
  }
  return made;
}

}  // namespace headrace::test
