// The backend for batches whose samples have different recipes, with outputs of one size and type.
#pragma once

#include <memory>
#include <vector>

#include "core/base/aligned_array.h"
#include "core/kernels/resize/kernels.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/batch_slots.h"

namespace headrace {

/// Makes samples in this machine's memory, each by the recipe that its first draw is the number of. The draws of that
/// recipe follow; those after them, where other recipes have more, are not read.
class JoinedBackend final : public Backend {
 public:
  /// `kernels` must outlive this. `slots_kept`: most free slots that stay mapped. Throws std::invalid_argument where
  /// there is no recipe, where their outputs or the files that go to Python differ, or where one has a step that runs
  /// in Python.
  JoinedBackend(std::vector<SampleOptions> kinds, const Kernels& kernels, size_t slots_kept);

  void prepare(Batch& batch, BatchMemory memory) override;
  std::unique_ptr<SampleWorker> make_worker() override;
  void retire() noexcept override { slots_.retire(); }
  size_t slots() const override { return slots_.count(); }

  /// Draws of a sample: the number of its recipe, and as many as any recipe has.
  int draws() const;

 private:
  const std::vector<SampleOptions> kinds_;
  const Kernels& kernels_;
  std::vector<AlignedArray<uint8_t>> luts_;
  BatchSlots slots_;
};

}  // namespace headrace
