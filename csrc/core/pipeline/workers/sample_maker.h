// Makes samples in this machine's memory: parses the header, plans, decodes and fuses, in one streaming pass.
#pragma once

#include "core/fuse/fuse.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/sample_worker.h"
#include "core/pipeline/workers/timed_decoder.h"

namespace headrace {

/// The output for a sample whose first element is at `base`. `lut`: the options' table, aligned as kernels.h requires.
Output output_at(uint8_t* base, const OutputStrides& strides, const SampleOptions& options, const uint8_t* lut);

/// The worker of CpuBackend. Derived classes write the elements elsewhere, or make something else from them.
class SampleMaker : public SampleWorker {
 public:
  /// `kernels`, `options` and `lut` (the options' table, aligned as kernels.h requires) must outlive this.
  SampleMaker(const Kernels& kernels, const SampleOptions& options, const uint8_t* lut)
      : options_(options), lut_(lut), fuser_(kernels) {}

  /// As in SampleWorker. Returns true: there is no device that could finish the sample. Throws NeedsPillow as
  /// plain_header and JpegDecoder do; the latter when part of the sample may already be written.
  bool make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch, int sample,
            bool may_offload) override;
  void make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) override;
  void store(const RawImage& image, Batch& batch, int sample) override;

  /// Adds this worker's work to the counters of another one, which must outlive this.
  void count_in(StageStats& other) { counted_ = &other; }

 protected:
  const SampleOptions& options_;
  const uint8_t* const lut_;

 private:
  /// The output for a sample with this plan.
  virtual Output output(Batch& batch, int sample, const Plan& plan);
  /// Called after the last row of a sample.
  virtual void finish(Batch& /*batch*/, int /*sample*/) {}

  StageStats* counted_ = &stats;
  TimedDecoder decoder_;
  Fuser fuser_;
};

}  // namespace headrace
