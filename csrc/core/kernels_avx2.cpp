// The inner loops for AVX2. Compile with -mavx2.
#if defined(__x86_64__) || defined(_M_X64)
#include "kernel_sets.h"
namespace headrace {
extern const Kernels kAvx2Kernels{"avx2", nullptr, nullptr, nullptr};
}
#endif
