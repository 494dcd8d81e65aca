// The fused kernel on a CUDA device.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/kernel/sample_job.h"

namespace headrace {

/// Puts the launch on the stream; its pointers are the device's.
cudaError_t cuda_fuse(const FuseLaunch& launch, cudaStream_t stream);

}  // namespace headrace
