// The backend for samples whose sizes differ: each one gets memory of its own.
#pragma once

#include "core/base/aligned_array.h"
#include "core/kernels/resize/kernels.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/sized_slots.h"

namespace headrace {

/// Makes samples on the CPU alone. A batch's memory is Batch::sized.
class SizedBackend final : public Backend {
 public:
  /// `kernels` must outlive this.
  SizedBackend(SampleOptions options, const Kernels& kernels);

  /// Throws std::logic_error if the caller passes memory: its size is not known before the samples are made.
  void prepare(Batch& batch, BatchMemory memory) override;
  std::unique_ptr<SampleWorker> make_worker() override;
  void retire() noexcept override { slots_.retire(); }
  size_t slots() const override { return slots_.count(); }

 private:
  const SampleOptions options_;
  const Kernels& kernels_;
  AlignedArray<uint8_t> lut_;
  SizedSlots slots_;
};

}  // namespace headrace
