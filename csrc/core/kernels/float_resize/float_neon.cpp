// The loops of a resize in float32 in NEON.
#include "core/kernels/float_resize/float_rows.h"

namespace headrace {

const FloatLoops kNeonFloats{along_x, sum_x, widen, along_y, narrow};

}  // namespace headrace
