// The part of an image that a warp reads.
#pragma once

#include "core/base/geometry.h"
#include "core/kernels/warp/warp_math.h"

namespace headrace {

/// A box of an image of size `in` that contains every pixel read for the outputs of `window`, a part of the warp's
/// output. Not always the smallest one; never empty.
Box warp_reach(const WarpJob& job, Size in, Box window);

}  // namespace headrace
