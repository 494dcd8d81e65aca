// Runs a launch of the kernels on the host: same grid, blocks and shared memory, one thread after another.
#pragma once

#include "gpu/kernel/sample_job.h"

namespace headrace {

/// Runs every block of the launch in the calling thread; its pointers are host pointers. Between two barriers the
/// threads run from first to last and from last to first in turn: alternating the order exposes missing barriers.
void emulate(const FuseLaunch& launch);

}  // namespace headrace
