// The part of an image that a warp reads.
#pragma once

#include "core/base/geometry.h"
#include "core/kernels/warp/warp_math.h"

namespace headrace {

/// A box of an image of size `in` that holds every pixel that the outputs of `window`, a part of the warp's, are made
/// of. Not always the smallest one; never empty.
Box warp_reach(const WarpJob& job, Size in, Box window);

}  // namespace headrace
