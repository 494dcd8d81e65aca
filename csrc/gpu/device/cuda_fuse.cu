// The kernels on CUDA: runs fuse_block.h and retouch_block.h with the GPU's threads and barriers.
#include <algorithm>

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

constexpr int kMostSamples = 65535;  // of a launch: limit of a grid's second dimension

// 64 registers per thread, so that four blocks fit a multiprocessor. Nothing is spilled in an inner loop.
__global__ void __launch_bounds__(kBlockThreads, 4) fuse_kernel(FuseLaunch launch) {
  __shared__ BlockMemory block;
  CudaThreads threads;
  fuse_block(threads, block, launch, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y));
}

__global__ void __launch_bounds__(kBlockThreads) retouch_kernel(FuseLaunch launch) {
  __shared__ RetouchMemory block;
  CudaThreads threads;
  retouch_block(threads, block, launch, static_cast<int>(blockIdx.x));
}

}  // namespace

cudaError_t cuda_fuse(const FuseLaunch& launch, cudaStream_t stream) {
  if (launch.tiles() == 0) return cudaSuccess;
  FuseLaunch part = launch;
  for (int done = 0; done < launch.samples; done += part.samples, part.jobs += part.samples) {
    part.samples = std::min(launch.samples - done, kMostSamples);
    const dim3 blocks(static_cast<unsigned>(launch.tiles()), static_cast<unsigned>(part.samples));
    fuse_kernel<<<blocks, kBlockThreads, 0, stream>>>(part);
  }
  if (launch.retouches) {
    retouch_kernel<<<static_cast<unsigned>(launch.samples), kBlockThreads, 0, stream>>>(launch);
  }
  return cudaGetLastError();
}

}  // namespace headrace
