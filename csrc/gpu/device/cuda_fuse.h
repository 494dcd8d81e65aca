// Launches the kernels on a CUDA device.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/kernel/sample_job.h"

namespace headrace {

/// Puts the launch on the stream. Its pointers are device pointers. Returns the error of the launch itself.
cudaError_t cuda_fuse(const FuseLaunch& launch, cudaStream_t stream);

}  // namespace headrace
