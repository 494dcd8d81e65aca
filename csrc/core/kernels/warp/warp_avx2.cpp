// Warps for AVX2.
#if defined(__x86_64__) || defined(_M_X64)
#include "core/kernels/warp/tensor_warp_vector.h"
#include "core/kernels/warp/warp_vector.h"

namespace headrace {

void run_warp_avx2(const WarpJob& job, const uint8_t* from, Size in, Box window, uint8_t* to) {
  run_warp(job, from, in, window, to);
}

void run_tensor_warp_avx2(const TensorWarp& warp, const uint8_t* from, Size size, uint8_t* to) {
  run_tensor_warp(warp, from, size, to);
}

}  // namespace headrace
#endif
