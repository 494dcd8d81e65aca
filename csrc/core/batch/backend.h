// Where the samples of a pipeline are made and what the memory of its batches is: this machine's, or a device's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/sample_worker.h"
#include "core/plan/plan.h"
#include "core/rows/output.h"
#include "core/trace/recorder.h"

namespace headrace {

/// What is made of every sample.
struct SampleOptions {
  Recipe recipe;
  OutputStrides strides;
  std::vector<uint8_t> lut;     // [channels][256] elements
  std::vector<uint8_t> erased;  // [value][channels] elements, what Erase writes
  int64_t max_pixels = 0;       // larger images go to Pillow, which has a limit of its own; 0: no limit
};

struct StageReport {
  std::string stage;
  int64_t items = 0, busy_ns = 0;
};

/// Memory that a caller brings for a batch. Where it is a device's, what was put on `stream` so far may still use it.
struct BatchMemory {
  uint8_t* data = nullptr;
  uintptr_t stream = 0;
};

/// What a backend tells the pipeline that it works for. Any thread.
class PipelineHooks {
 public:
  /// A sample that was handed on is made.
  virtual void sample_made(const std::shared_ptr<Batch>& batch) = 0;
  /// A sample that was handed on comes back: `worker` makes it, in the caller's thread.
  virtual void make_here(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample,
                         std::span<const uint8_t> bytes) = 0;
  /// take_help() has something to give.
  virtual void help_wanted() = 0;
  /// The consumer may have the batch.
  virtual void batch_ready(Batch& batch) = 0;
  /// Where threads record what they do.
  virtual Recorder& recorder() = 0;

 protected:
  ~PipelineHooks() = default;
};

/// A sample that was handed on, for a worker that has nothing better to do.
struct HandedOn {
  std::shared_ptr<Batch> batch;
  int sample = 0;
  std::span<const uint8_t> bytes;  // live as long as the batch
};

/// Every method may be called from any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  /// Once, before all else. `hooks` are called until retire().
  virtual void attach(PipelineHooks& hooks) { hooks_ = &hooks; }
  /// The first call of each of the pipeline's threads.
  virtual void begin_thread() noexcept {}
  /// A batch that has no samples yet.
  virtual std::shared_ptr<Batch> new_batch() { return std::make_shared<Batch>(); }
  /// Gives a new batch its memory: what the caller brought, else its own.
  virtual void prepare(Batch& batch, BatchMemory memory) = 0;
  /// The same for a batch that makes some samples of `first` again, in its memory.
  virtual void prepare_repair(Batch& batch, const Batch& first) {
    batch.slot = first.slot;
    batch.memory = first.memory;
  }
  std::unique_ptr<SampleWorker> worker() {
    auto one = make_worker();
    one->stats.recorder = &hooks_->recorder();
    return one;
  }
  /// Every sample of the batch is made or has failed. Calls hooks.batch_ready once the consumer may have it: now, or
  /// later from another thread.
  virtual void complete(const std::shared_ptr<Batch>& batch) { hooks_->batch_ready(*batch); }
  /// A sample that was handed on and that nobody has begun. Workers ask when no other sample is queued.
  virtual std::optional<HandedOn> take_help() { return std::nullopt; }
  virtual bool wants_help() const { return false; }
  /// What the caller puts on his stream from now on sees the batch, which is ready.
  virtual void hand_over(Batch&, uintptr_t /*stream*/) {}
  /// Nobody wants this batch, and no worker writes it any more: the caller is about to free the memory he brought.
  virtual void abandon(Batch&) {}
  /// No further batch will be asked for: free memory is given to the system, and no hook is called any more.
  virtual void retire() noexcept = 0;
  /// Pieces of memory for batches that exist now, free or in use.
  virtual size_t slots() const = 0;
  /// Stages beyond those of the workers.
  virtual std::vector<StageReport> stats() const { return {}; }
  /// What makes batches slower than they ought to be, as a sentence; empty: nothing that is known.
  virtual std::string trouble() const { return {}; }

 protected:
  virtual std::unique_ptr<SampleWorker> make_worker() = 0;

  PipelineHooks* hooks_ = nullptr;
};

}  // namespace headrace
