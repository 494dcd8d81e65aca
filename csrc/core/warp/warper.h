// PIL.Image.transform of whole images, AFFINE and PERSPECTIVE, with Pillow's arithmetic.
#pragma once

#include "core/base/geometry.h"
#include "core/plan/plan.h"
#include "core/warp/warp_math.h"

namespace headrace {

/// The warp, with the way in which Pillow computes it.
WarpJob warp_job(const Warp& warp);

/// Warps an image, RGBX rows without gaps, into one of size warp.out, which must not overlap it.
void run_warp(const Warp& warp, const uint8_t* from, Size in, uint8_t* to);

}  // namespace headrace
