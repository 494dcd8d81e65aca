// Makes all views of a sample from one decode: a tee hands each strip of rows to the sinks of every view.
#pragma once

#include <memory>
#include <vector>

#include "core/base/aligned_array.h"
#include "core/fuse/fuse.h"
#include "core/fuse/sinks/tee.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/sample_worker.h"
#include "core/pipeline/columns/gather_backend.h"
#include "core/pipeline/workers/timed_decoder.h"

namespace headrace {

/// The worker of ViewsBackend.
class ViewsMaker final : public SampleWorker {
 public:
  /// All arguments must outlive this. `luts`: one per view, aligned as kernels.h requires. `layout`: one column per
  /// view, or a single column whose rows hold all views.
  ViewsMaker(const Kernels& kernels, const std::vector<SampleOptions>& views,
             const std::vector<AlignedArray<uint8_t>>& luts, const GatherLayout& layout);

  /// As SampleMaker::make, for every view: a view that cannot be made fails the sample.
  bool make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch, int sample,
            bool may_offload) override;
  void make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) override;

 private:
  /// One view; its plan and output are those of the sample that is being made.
  struct View {
    View(const Kernels& kernels, const SampleOptions& from, const uint8_t* table)
        : options(from), lut(table), fuser(kernels) {}
    const SampleOptions& options;
    const uint8_t* lut;
    Fuser fuser;
    Plan plan;
    Output output;
  };

  void plan(const double* draws, Size image, const Batch& batch, int sample);

  const GatherLayout& layout_;
  std::vector<std::unique_ptr<View>> views_;
  TimedDecoder decoder_;
  Tee tee_;
};

}  // namespace headrace
