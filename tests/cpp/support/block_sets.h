// The sets of block loops that this processor runs, each of which must give the bytes of libjpeg-turbo.
#pragma once

#include <vector>

#include "core/jpeg/idct/block_loops.h"
#include "core/kernels/resize/kernels.h"

namespace headrace::test {

/// The scalar set first.
inline std::vector<const BlockLoops*> block_sets() {
  std::vector<const BlockLoops*> sets{&kScalarBlocks};
  for (const char* name : {"avx2", "avx512", "neon"})
    if (const Kernels* kernels = kernels_named(name)) sets.push_back(kernels->blocks);
  return sets;
}

}  // namespace headrace::test
