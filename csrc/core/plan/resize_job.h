// A resize of a part of an image to a part of another.
#pragma once

#include "core/base/geometry.h"
#include "core/plan/plan.h"

namespace headrace {

struct ResizeJob {
  Size in, out;
  Filter filter = Filter::kBilinear;
  bool vertical_first = false;
  Box want;              // the part of the output to make
  Box have;              // the part of the input whose rows are pushed; holds what `want` reads
  int plane_stride = 0;  // of the rows passed on, as in kernels.h; not 0 only if the width changes
};

}  // namespace headrace
