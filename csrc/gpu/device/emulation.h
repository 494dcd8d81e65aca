// The fused kernel's launch on the host: same grid, same blocks, same shared memory, one thread after the other.
#pragma once

#include "gpu/kernel/sample_job.h"

namespace headrace {

/// Runs every block of the launch here; all its pointers are host memory. Threads take turns from the first to the last
/// and from the last to the first, so that one that reads what another writes in the same step shows.
void emulate(const FuseLaunch& launch);

}  // namespace headrace
