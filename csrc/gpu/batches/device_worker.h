// Runs the CPU's stages of a sample and stages the result: reads, plans, decodes to planes, builds the job.
#pragma once

#include "core/fuse/fuse.h"
#include "core/fuse/sinks/raw_rows.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/jpeg/decode/plane_decoder.h"
#include "core/kernels/resize/kernels.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/sample_worker.h"
#include "gpu/batches/device_batch.h"
#include "gpu/decoders/decode_lane.h"
#include "gpu/kernel/job_builder.h"

namespace headrace {

/// The worker of DeviceBackend. Its batches are DeviceBatches.
class DeviceWorker final : public SampleWorker {
 public:
  /// `options` and `lane` (null: the CPU decodes everything) must outlive this.
  DeviceWorker(const SampleOptions& options, DecodeLane* lane);

  bool make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch, int sample,
            bool may_offload) override;
  void make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) override;

 private:
  SampleJob from_pixels(const Plan& plan, const RawImage& image, Stager& stager);
  /// Runs on the CPU a plan that the kernel cannot run, except for the element table and the erased boxes.
  template <class Run>
  SampleJob finished_here(const Plan& plan, Stager& stager, Run run);

  void make_job(std::span<const uint8_t> bytes, const JpegHeader& header, const Plan& plan, DeviceBatch& batch,
                int sample);
  bool offload(std::span<const uint8_t> bytes, const JpegHeader& header, const Plan& plan,
               const std::shared_ptr<Batch>& batch, int sample);

  const SampleOptions& options_;
  DecodeLane* const lane_;
  PlaneDecoder planes_{kernels().blocks};
  JpegDecoder rows_{kernels().blocks};
  RawRows raw_rows_{kernels()};
  Fuser fuser_;
  JobBuilder builder_;
};

}  // namespace headrace
