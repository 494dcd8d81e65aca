// The interface of a device at the end of a pipeline, beyond that of every backend: it finishes whole batches
// asynchronously, and may decode samples itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/trace/recorder.h"
#include "core/pipeline/batch/batch.h"
#include "core/pipeline/batch/sample_worker.h"
#include "core/pipeline/batch/stage_report.h"

namespace headrace {

/// The pipeline's callbacks for its device. Any thread.
class PipelineHooks {
 public:
  /// Call when the device has decoded an offloaded sample.
  virtual void sample_made(const std::shared_ptr<Batch>& batch) = 0;
  /// Call when the device has refused an offloaded sample: `worker` makes it, in the calling thread. `bytes`: the
  /// sample's file.
  virtual void make_here(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample,
                         std::span<const uint8_t> bytes) = 0;
  /// Call when there is one more sample to steal: wakes an idle worker.
  virtual void stealable_added() = 0;
  /// Call when the consumer may take the batch.
  virtual void batch_ready(Batch& batch) = 0;
  /// Where the device's threads record their spans.
  virtual Recorder& recorder() = 0;

 protected:
  ~PipelineHooks() = default;
};

/// An offloaded sample that a worker makes after all.
struct StolenSample {
  std::shared_ptr<Batch> batch;
  int sample = 0;
  std::span<const uint8_t> bytes;  // its file; valid as long as the batch
};

/// Any thread may call any method. An offloaded sample is one for which SampleWorker::make returned false.
class DeviceSide {
 public:
  /// Starts the device's threads. Call once, before all other methods; they call `hooks` until Backend::retire()
  /// returns.
  virtual void start(PipelineHooks& hooks) = 0;
  /// Makes the device current in the calling thread permanently. The first call of each of the pipeline's threads.
  virtual void bind_thread() noexcept = 0;
  /// A new batch without samples. Backend::prepare accepts only such batches.
  virtual std::shared_ptr<Batch> new_batch() = 0;
  /// Backend::prepare for a batch that makes some samples of `first` again. The pipeline has set its memory.
  virtual void prepare_repair(Batch& batch, const Batch& first) = 0;
  /// Call when every sample of the batch is made or has failed. Calls hooks.batch_ready later, from another thread.
  virtual void complete(const std::shared_ptr<Batch>& batch) = 0;
  /// Takes back an offloaded sample that no decoder has begun. Workers ask when no other sample is queued.
  virtual std::optional<StolenSample> steal() = 0;
  virtual bool stealable() const = 0;
  /// Makes work that is put on `stream` after this call see the batch, which must be ready. Does not block.
  virtual void hand_over(Batch& batch, uintptr_t stream) = 0;
  /// Blocks until the device no longer writes into a cancelled batch, whose memory the caller is about to free. No
  /// worker may still write into it.
  virtual void abandon(Batch& batch) = 0;
  /// Stages beyond those of the workers.
  virtual std::vector<StageReport> stats() const = 0;
  /// Why the device is slower than it should be, as a sentence; empty where no reason is known.
  virtual std::string trouble() const = 0;

 protected:
  ~DeviceSide() = default;
};

}  // namespace headrace
