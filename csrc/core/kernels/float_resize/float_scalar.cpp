// The loops of a resize in float32 in plain C++.
#include "core/kernels/float_resize/float_rows.h"

namespace headrace {

const FloatLoops kScalarFloats{along_x, sum_x, widen, along_y, narrow};

}  // namespace headrace
