// The matrices of rotations and affine maps, for an image of a known size: in the operations, and their order, of
// PIL.Image.rotate and torchvision.
#include "core/plan/plan_warp.h"

#include <algorithm>

#include "core/base/pixel_math.h"

namespace headrace {
namespace {

Warp warp_of(const Step& step, const std::array<double, 6>& matrix) {
  Warp warp;
  warp.filter = step.filter;
  std::copy(matrix.begin(), matrix.end(), warp.a);
  warp.fill = packed(step.fill[0], step.fill[1], step.fill[2]);
  return warp;
}

}  // namespace

Rotation rotation(const Step& step, const double* turn, Size image) {
  const double angle = turn[0], cosine = turn[1], sine = turn[2];
  const double width = image.width, height = image.height;
  if (angle == 0) return {Rotation::Kind::kNothing, {}};
  if (angle == 180) return {Rotation::Kind::kHalfTurn, {}};
  if ((angle == 90 || angle == 270) && image.width == image.height) {  // Pillow transposes: no filter mixes pixels
    Rotation quarter{Rotation::Kind::kWarp, warp_of(step, angle == 90 ? std::array{0.0, -1.0, width, 1.0, 0.0, 0.0}
                                                                      : std::array{0.0, 1.0, 0.0, -1.0, 0.0, height})};
    quarter.warp.filter = Filter::kNearest;
    return quarter;
  }
  const double x = width / 2, y = height / 2;
  return {Rotation::Kind::kWarp,
          warp_of(step, {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y})};
}

Warp affine(const Step& step) { return warp_of(step, step.matrix); }

}  // namespace headrace
