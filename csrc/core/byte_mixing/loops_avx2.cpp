// The loops from bytes to normalised float32 for AVX2.
#if defined(__x86_64__) || defined(_M_X64)
#include "core/byte_mixing/loops_vector.h"

namespace headrace {

const ByteLoops kAvx2ByteLoops{plain, mixed};

}  // namespace headrace
#endif
