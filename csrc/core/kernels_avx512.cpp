// The inner loops for AVX-512. Compile with -mavx512.
#if defined(__x86_64__) || defined(_M_X64)
#include "kernel_sets.h"
namespace headrace {
extern const Kernels kAvx512Kernels{"avx512", nullptr, nullptr, nullptr};
}
#endif
