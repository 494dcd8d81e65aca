// The backend for batches in this machine's memory: slots of a pool, or memory that the caller passes.
#pragma once

#include "core/base/aligned_array.h"
#include "core/kernels/resize/kernels.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/batch_slots.h"

namespace headrace {

/// Makes samples on the CPU alone.
class CpuBackend final : public Backend {
 public:
  /// `kernels` must outlive this. `slots_kept`: most free slots that stay mapped.
  CpuBackend(SampleOptions options, const Kernels& kernels, size_t slots_kept);

  void prepare(Batch& batch, BatchMemory memory) override;
  std::unique_ptr<SampleWorker> make_worker() override;
  void retire() noexcept override { slots_.retire(); }
  size_t slots() const override { return slots_.count(); }

 private:
  const SampleOptions options_;
  const Kernels& kernels_;
  AlignedArray<uint8_t> lut_;
  BatchSlots slots_;
};

}  // namespace headrace
