// The kernels on CUDA.
#include "entropy_rows.h"
#include "invert_blocks.h"

namespace headrace {
namespace {

template <int kThreads>
class CudaThreads {
 public:
  template <class Step>
  HEADRACE_HD void each(Step step) {
#if defined(__CUDA_ARCH__)
    step(static_cast<int>(threadIdx.x));
    if (kThreads == 32)
      __syncwarp();
    else
      __syncthreads();
#endif
  }
};

struct NoWatch {
  HEADRACE_HD NoWatch& of(int) { return *this; }
  HEADRACE_HD void group() {}
  HEADRACE_HD void symbol(bool, bool, uint32_t) {}
  HEADRACE_HD void short_of_words() {}
  HEADRACE_HD void end(uint32_t) {}
};

__global__ void __launch_bounds__(kLanes) entropy_kernel(JpegLaunch launch) {
  __shared__ EntropyMemory block;
  CudaThreads<kLanes> threads;
  NoWatch watch;
  entropy_block(threads, block, launch, static_cast<int>(blockIdx.x), watch);
}

// blockIdx.x: the piece of a component, y: the image, z: the component.
__global__ void __launch_bounds__(kInvertThreads) invert_kernel(JpegLaunch launch) {
  __shared__ InvertMemory block;
  CudaThreads<kInvertThreads> threads;
  const JpegJob& image = launch.images[blockIdx.y];
  const int component = static_cast<int>(blockIdx.z);
  if (component >= image.components) return;
  invert_block_of(threads, block, image, image.plane[component], static_cast<int>(blockIdx.x));
}

}  // namespace

cudaError_t cuda_decode(const JpegLaunch& launch, int row_blocks, int images, int most_pieces, cudaStream_t stream) {
  entropy_kernel<<<static_cast<unsigned>(row_blocks), kLanes, 0, stream>>>(launch);
  const dim3 pieces(static_cast<unsigned>(most_pieces), static_cast<unsigned>(images), 3);
  invert_kernel<<<pieces, kInvertThreads, 0, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace headrace
