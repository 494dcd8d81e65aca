// The matrices of rotations and affine maps, for an image of a known size.
#pragma once

#include "core/plan/plan.h"

namespace headrace {

/// What Image.rotate does with an image.
struct Rotation {
  enum class Kind : uint8_t { kNothing, kHalfTurn, kWarp };
  Kind kind{};
  Warp warp;  // for kWarp
};

/// The rotation of an image of this size. `turn`: the angle in degrees, in [0, 360), and the cosine
/// and sine that Image.rotate puts into its matrix.
Rotation rotation(const Step& step, const double* turn, Size image);

/// The warp that turns an image by 180 degrees.
Warp half_turn(Size image);

/// The warp of an Affine step. `draw`: its drawn coefficient, if it has one.
Warp affine(const Step& step, double draw, Size image);

/// The warp of a RandomAffine step. `draws`: the step's own.
Warp random_affine(const Step& step, const double* draws, Size image);

/// The map of a TensorWarp step.
TensorWarp tensor_warp(const Step& step);

/// The warp of a RandomPerspective step. `coefficients`: Pillow's eight; not numbers if the corners are on one line.
/// Throws Error(kPlan) for these.
Warp perspective(const Step& step, const double* coefficients, Size image);

}  // namespace headrace
