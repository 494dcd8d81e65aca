// The kernels on CUDA: runs fuse_block.h and retouch_block.h with the GPU's threads and barriers.
#include "gpu/device/cuda_fuse.h"
#include "gpu/kernel/fuse_block.h"
#include "gpu/kernel/retouch_block.h"

namespace headrace {
namespace {

class CudaThreads {
 public:
  template <class Step>
  HEADRACE_HD void each(Step step) {
#if defined(__CUDA_ARCH__)
    step(static_cast<int>(threadIdx.x), own_);
    __syncthreads();
#endif
  }

 private:
  ThreadMemory own_;
};

// 80 registers per thread: three blocks fit a multiprocessor without spilling; for a fourth the compiler would spill.
__global__ void __launch_bounds__(kBlockThreads, 3) fuse_kernel(FuseLaunch launch) {
  __shared__ BlockMemory block;
  CudaThreads threads;
  fuse_block(threads, block, launch, static_cast<int>(blockIdx.x));
}

__global__ void __launch_bounds__(kBlockThreads) retouch_kernel(FuseLaunch launch) {
  __shared__ RetouchMemory block;
  CudaThreads threads;
  retouch_block(threads, block, launch, static_cast<int>(blockIdx.x));
}

}  // namespace

cudaError_t cuda_fuse(const FuseLaunch& launch, cudaStream_t stream) {
  if (launch.blocks() == 0) return cudaSuccess;
  fuse_kernel<<<static_cast<unsigned>(launch.blocks()), kBlockThreads, 0, stream>>>(launch);
  if (launch.retouches) {
    retouch_kernel<<<static_cast<unsigned>(launch.samples), kBlockThreads, 0, stream>>>(launch);
  }
  return cudaGetLastError();
}

}  // namespace headrace
