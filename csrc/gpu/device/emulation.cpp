// Runs blocks and threads as loops.
#include "gpu/device/emulation.h"

#include <memory>

#include "gpu/kernel/fuse_block.h"
#include "gpu/kernel/retouch_block.h"

namespace headrace {
namespace {

class HostThreads {
 public:
  template <class Step>
  void each(Step step) {
    for (int i = 0; i < kBlockThreads; ++i) {
      const int thread = backwards_ ? kBlockThreads - 1 - i : i;
      step(thread, memory_[thread]);
    }
    backwards_ = !backwards_;
  }

 private:
  ThreadMemory memory_[kBlockThreads];
  bool backwards_ = false;
};

}  // namespace

void emulate(const FuseLaunch& launch) {
  const auto block = std::make_unique<BlockMemory>();
  const auto threads = std::make_unique<HostThreads>();
  for (int sample = 0; sample < launch.samples; ++sample) {
    for (int tile = 0; tile < launch.tiles(); ++tile) fuse_block(*threads, *block, launch, tile, sample);
  }
  if (!launch.retouches) return;
  const auto retouching = std::make_unique<RetouchMemory>();
  for (int i = 0; i < launch.samples; ++i) retouch_block(*threads, *retouching, launch, i);
}

}  // namespace headrace
