// The backend for several views of each sample in this machine's memory: one decode, one output for each view.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/base/aligned_array.h"
#include "core/kernels/resize/kernels.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/batch_slots.h"
#include "core/pipeline/columns/gather_backend.h"

namespace headrace {

/// The memory of a batch holds the samples of the first view, then those of the second, and so on, as the columns of a
/// GatherLayout; or, if they are stacked, all views of the first sample, then those of the second: one column. Views
/// that are not stacked may be in memory of their own, which the caller passes.
class ViewsBackend final : public Backend {
 public:
  /// `views`: at least one; their recipes have the same draws and no Python call. `stacked`: whether the views of a
  /// sample are stored one after another. `kernels` must outlive this. `slots_kept`: most free slots that stay mapped.
  /// Throws std::invalid_argument for other views.
  ViewsBackend(std::vector<SampleOptions> views, bool stacked, const Kernels& kernels, size_t slots_kept);

  void prepare(Batch& batch, BatchMemory memory) override;
  std::unique_ptr<SampleWorker> make_worker() override;
  void retire() noexcept override { slots_.retire(); }
  size_t slots() const override { return slots_.count(); }
  std::vector<const Recipe*> views() const override;
  const GatherLayout& layout() const { return layout_; }

 private:
  const std::vector<SampleOptions> views_;
  const Kernels& kernels_;
  const GatherLayout layout_;
  std::vector<AlignedArray<uint8_t>> luts_;
  BatchSlots slots_;
};

}  // namespace headrace
