// What follows from the coefficients of a warp: the way in which Pillow computes it, and the matrix in fixed point.
#pragma once

#include "core/plan/plan.h"
#include "core/warp/warp_math.h"

namespace headrace {

/// The warp, with the way in which Pillow computes it.
WarpJob warp_job(const Warp& warp);

}  // namespace headrace
