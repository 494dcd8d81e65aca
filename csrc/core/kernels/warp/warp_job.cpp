// Derives from the coefficients of a warp how Pillow computes it, and the matrix in fixed point.
#include <cmath>
#include <limits>

#include "core/kernels/warp/warp_math.h"

namespace headrace {
namespace {

constexpr double kFixedLimit = 32768.0;

// The conversion of an x86 processor: values that do not fit become the least integer.
int32_t to_int(double value) {
  return value > -2147483649.0 && value < 2147483648.0 ? static_cast<int32_t>(value)
                                                       : std::numeric_limits<int32_t>::min();
}

uint32_t to_fixed(double value) { return static_cast<uint32_t>(to_int(std::floor(value * 65536.0 + 0.5))); }

WarpPath path_of(const Warp& warp) {
  if (warp.perspective || warp.filter != Filter::kNearest) return WarpPath::kEachPixel;
  const double* a = warp.a;
  if (a[1] == 0 && a[3] == 0) return WarpPath::kAddedUp;
  const auto near = [a](int x, int y) {
    return std::fabs(x * a[0] + y * a[1] + a[2]) < kFixedLimit && std::fabs(x * a[3] + y * a[4] + a[5]) < kFixedLimit;
  };
  const auto [width, height] = warp.out;
  return near(0, 0) && near(width, height) && near(0, height) && near(width, 0) ? WarpPath::kFixed : WarpPath::kAddedUp;
}

}  // namespace

WarpJob warp_job(const Warp& warp) {
  const double* a = warp.a;
  return {warp,
          path_of(warp),
          {{to_fixed(a[0]), to_fixed(a[1]), to_fixed(a[2] + a[0] * 0.5 + a[1] * 0.5), to_fixed(a[3]), to_fixed(a[4]),
            to_fixed(a[5] + a[3] * 0.5 + a[4] * 0.5)}}};
}

}  // namespace headrace
