// The matrices of rotations and affine maps, for an image of a known size: in the operations, and their order, of
// PIL.Image.rotate and torchvision.
#include "core/plan/plan_warp.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/pixel_math.h"
#include "core/plan/plan_geometry.h"

namespace headrace {
namespace {

using Matrix = std::array<double, 6>;

struct Point {
  double x, y;
};

Point mapped(const Matrix& m, Point from) {
  return {m[0] * from.x + m[1] * from.y + m[2], m[3] * from.x + m[4] * from.y + m[5]};
}

Point center_of(const Step& step, Size image) {
  return step.centered ? Point{image.width / 2.0, image.height / 2.0} : Point{step.center[0], step.center[1]};
}

Warp warp_of(const Step& step, const Matrix& matrix, Size out) {
  Warp warp;
  warp.filter = step.filter;
  std::copy(matrix.begin(), matrix.end(), warp.a);
  warp.fill = pack_rgbx(step.fill[0], step.fill[1], step.fill[2]);
  warp.out = out;
  return warp;
}

// A rotation by 90 degrees, which Pillow does without a filter.
Warp quarter_turn(const Step& step, bool left, Size image) {
  const double width = image.width, height = image.height;
  Warp warp =
      warp_of(step, left ? Matrix{0, -1, width, 1, 0, 0} : Matrix{0, 1, 0, -1, 0, height}, {image.height, image.width});
  warp.filter = Filter::kNearest;
  return warp;
}

// The length from the smallest to the largest of four numbers, in whole pixels. If too large for int: a number larger
// than any image.
int edge(const double (&at)[4]) {
  const auto [least, most] = std::minmax_element(at, at + 4);
  return static_cast<int>(std::min(std::ceil(*most) - std::floor(*least), 2e9));
}

}  // namespace

Rotation rotation(const Step& step, const double* turn, Size image) {
  const double angle = turn[0], cosine = turn[1], sine = turn[2];
  if (step.centered) {
    if (angle == 0) return {Rotation::Kind::kNothing, {}};
    if (angle == 180) return {Rotation::Kind::kHalfTurn, {}};
    if ((angle == 90 || angle == 270) && (step.expand || image.width == image.height)) {
      return {Rotation::Kind::kWarp, quarter_turn(step, angle == 90, image)};
    }
  }
  Matrix matrix{cosine, sine, 0, -sine, cosine, 0};
  const Point center = center_of(step, image), moved = mapped(matrix, {-center.x, -center.y});
  matrix[2] = moved.x + center.x;
  matrix[5] = moved.y + center.y;
  if (!step.expand) return {Rotation::Kind::kWarp, warp_of(step, matrix, image)};
  const double width = image.width, height = image.height;
  const Point corners[4] = {mapped(matrix, {0, 0}), mapped(matrix, {width, 0}), mapped(matrix, {width, height}),
                            mapped(matrix, {0, height})};
  const Size out{edge({corners[0].x, corners[1].x, corners[2].x, corners[3].x}),
                 edge({corners[0].y, corners[1].y, corners[2].y, corners[3].y})};
  const Point start = mapped(matrix, {-(out.width - width) / 2.0, -(out.height - height) / 2.0});
  matrix[2] = start.x;
  matrix[5] = start.y;
  return {Rotation::Kind::kWarp, warp_of(step, matrix, out)};
}

Warp half_turn(Size image) {
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  return {false, Filter::kNearest, {-1, 0, width, 0, -1, height}, 0, image};
}

Warp affine(const Step& step, double draw, Size image) {
  Matrix matrix = step.matrix;
  if (step.coefficient >= 0) matrix[static_cast<size_t>(step.coefficient)] = draw;
  return warp_of(step, matrix, image);
}

Warp random_affine(const Step& step, const double* draws, Size image) {
  const double shift_x = round_half_even(draws[1] * image.width), shift_y = round_half_even(draws[2] * image.height);
  const double a = draws[6], b = draws[7], d = draws[8], e = draws[9];
  const auto [x, y] = center_of(step, image);
  Matrix matrix{a, b, 0, d, e, 0};
  if (step.first_version) {
    matrix[2] = a * (-x - shift_x) + b * (-y - shift_y) + x;
    matrix[5] = d * (-x - shift_x) + e * (-y - shift_y) + y;
  } else {
    const double moved_x = x + shift_x, moved_y = y + shift_y;
    matrix[2] = x - a * moved_x - b * moved_y;
    matrix[5] = y - d * moved_x - e * moved_y;
  }
  return warp_of(step, matrix, image);
}

TensorWarp tensor_warp(const Step& step) {
  TensorWarp warp;
  const auto rounded = [](double value) { return static_cast<float>(value); };
  std::transform(step.matrix.begin(), step.matrix.end(), warp.matrix.begin(), rounded);
  std::transform(step.color.begin(), step.color.end(), warp.fill.begin(), rounded);
  warp.bilinear = step.filter == Filter::kBilinear;
  warp.filled = step.filled;
  warp.first_version = step.first_version;
  warp.fused = step.fused;
  warp.fused_positions = step.fused_positions;
  return warp;
}

Warp perspective(const Step& step, const double* coefficients, Size image) {
  if (std::isnan(coefficients[0])) {
    throw Error(Stage::kPlan,
                "RandomPerspective moved three corners onto one line, so there is no such perspective; use a "
                "smaller distortion_scale or a larger image");
  }
  Warp warp = warp_of(step, {}, image);
  warp.perspective = true;
  std::copy(coefficients, coefficients + 8, warp.a);
  return warp;
}

}  // namespace headrace
