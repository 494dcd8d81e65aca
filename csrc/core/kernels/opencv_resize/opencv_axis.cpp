// Computes the positions and weights of OpenCV's bilinear resize along one axis. Compile with -ffp-contract=off.
#include "core/kernels/opencv_resize/opencv_axis.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

constexpr float kWeightSum = 2048;

int16_t weight_of(float share) { return static_cast<int16_t>(std::nearbyint(share * kWeightSum)); }

}  // namespace

// OpenCV inverts the quotient of the sizes, and rounds twice.
OpencvAxis::OpencvAxis(int in, int out) : in_(in), scale_(1.0 / (static_cast<double>(out) / in)) {}

OpencvAxis::Taps OpencvAxis::taps(int at, float share) const {
  const int last = in_ - 1, first = std::clamp(at, 0, last);
  const int16_t weight = weight_of(share);
  return {first, weight == 0 ? first : std::clamp(at + 1, 0, last), weight_of(1.0f - share), weight};
}

OpencvAxis::Taps OpencvAxis::row(int index) const {
  const float at = position(index), floor = std::floor(at);
  return taps(static_cast<int>(floor), at - floor);
}

OpencvAxis::Taps OpencvAxis::column(int index) const {
  const float at = position(index), floor = std::floor(at);
  const int whole = static_cast<int>(floor);
  return whole < 0 || whole >= in_ - 1 ? taps(whole, 0.0f) : taps(whole, at - floor);
}

}  // namespace headrace
