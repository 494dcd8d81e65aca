// Warps for NEON: the compiler uses vectors of two doubles.
#include "core/kernels/warp/tensor_warp_vector.h"
#include "core/kernels/warp/warp_vector.h"

namespace headrace {

void run_warp_neon(const WarpJob& job, const uint8_t* from, Size in, Box window, uint8_t* to) {
  run_warp(job, from, in, window, to);
}

void run_tensor_warp_neon(const TensorWarp& warp, const uint8_t* from, Size size, uint8_t* to) {
  run_tensor_warp(warp, from, size, to);
}

}  // namespace headrace
