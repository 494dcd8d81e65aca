// PIL.Image.transform of whole images, AFFINE and PERSPECTIVE, with Pillow's arithmetic.
#pragma once

#include <vector>

#include "core/base/geometry.h"
#include "core/plan/plan.h"
#include "core/warp/warp_math.h"

namespace headrace {

/// How Pillow computes a warp.
WarpPath warp_path(const Warp& warp);

/// The matrix of an affine warp on WarpPath::kFixed.
FixedMatrix fixed_matrix(const Warp& warp);

/// Each worker has one, which reuses its memory.
class Warper {
 public:
  /// Warps an image, RGBX rows without gaps, into one of size warp.out, which must not overlap it.
  void run(const Warp& warp, const uint8_t* from, Size in, uint8_t* to);

 private:
  std::vector<int> columns_;
};

}  // namespace headrace
