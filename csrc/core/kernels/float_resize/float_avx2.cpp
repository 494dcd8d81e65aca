// The loops of a resize in float32 in AVX2.
#if defined(__x86_64__) || defined(_M_X64)
#include "core/kernels/float_resize/float_rows.h"

namespace headrace {

const FloatLoops kAvx2Floats{along_x, sum_x, widen, along_y, narrow};

}  // namespace headrace
#endif
