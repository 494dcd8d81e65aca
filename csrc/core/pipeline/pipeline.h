// Read, header, plan, decode, fuse: the only file that knows every stage.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/backend.h"
#include "core/batch/batch.h"
#include "core/batch/stage_report.h"
#include "core/kernels/kernels.h"
#include "core/pipeline/python_lane.h"
#include "core/plan/plan.h"
#include "core/trace/recorder.h"
#include "core/trace/stage_stats.h"

namespace headrace {

struct PipelineOptions : SampleOptions {
  int threads = 0;                     // 0: the consumer's thread does the work, in run_one()
  size_t slots_kept = 3;               // free slots that are not given back to the system
  const Kernels* kernels = nullptr;    // nullptr: the best this processor runs
  std::shared_ptr<Backend> backend;    // nullptr: this machine's memory
  std::shared_ptr<Recorder> recorder;  // nullptr: nobody records what the threads do
};

/// Every method may be called from any thread, and throws std::logic_error in a process forked after the construction.
class Pipeline {
 public:
  explicit Pipeline(PipelineOptions options);
  ~Pipeline();  // close(), then waits for the samples in the workers' hands
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Queues a batch of rows of `blobs`, its samples' draws behind one another. `memory`: where to write it (it must
  /// live until the batch is ready or cancel() returned); null: memory of the backend.
  std::shared_ptr<Batch> submit(std::shared_ptr<const BlobTable> blobs, std::vector<int64_t> rows,
                                std::vector<double> draws, BatchMemory memory);
  /// Makes other samples in some places of a complete batch, ahead of all that is queued.
  std::shared_ptr<Batch> repair(const Batch& batch, std::vector<int> places, std::shared_ptr<const BlobTable> blobs,
                                std::vector<int64_t> rows, std::vector<double> draws);

  /// True once every sample of the batch is made or has failed; false when `patience` ran out, and after close() or
  /// cancel().
  bool wait(const Batch& batch, std::chrono::milliseconds patience);
  /// What the caller puts on his stream (a device's) from now on sees the batch, which is ready.
  void hand_over(Batch& batch, uintptr_t stream);
  /// Nobody wants this batch any more: samples not begun are not begun. A slot of the ring lives until the last worker
  /// left it; where the caller brought the memory, waits until nobody writes into it (a few milliseconds).
  void cancel(Batch& batch);

  /// Moves the samples at `places`, ascending, to the front of a complete batch in this machine's memory.
  void compact(const Batch& batch, std::span<const int> places) const;

  /// Without threads: makes the next queued sample here, one caller at a time; false when none is queued.
  bool run_one();

  /// What Python has to do: files that Pillow decodes, and calls of steps that are not native.
  std::optional<PythonJob> next_pillow_job(std::chrono::milliseconds patience);
  size_t pillow_jobs_waiting() const;
  std::optional<PythonJob> next_call(std::chrono::milliseconds patience);
  size_t calls_waiting() const;
  /// The image that Pillow decoded or a call made, RGBX: goes on through the recipe like any other. Consumes the job.
  void finish(PythonJob& job, const uint8_t* pixels, Size size, int64_t python_ns);
  /// The last call made the sample's elements, as they lie in the batch. In this machine's memory only.
  void finish_elements(PythonJob& job, std::span<const uint8_t> elements, int64_t python_ns);
  /// Puts a popped job back at the front of the queue. Does nothing for a finished one.
  void put_back(PythonJob& job);
  /// Python raised.
  void fail(PythonJob& job, std::string reason);

  /// Drops what is queued, wakes everybody and gives free slots to the system. Idempotent.
  void close();
  bool closed() const;
  /// After close(): true once no thread is in the middle of a sample, false when `patience` ran out. Then the
  /// destructor would wait on; who cannot, leaves the pipeline, and all that its tables point to, to the threads for
  /// good.
  bool settle(std::chrono::milliseconds patience);

  std::vector<StageReport> stats() const;
  /// As the backend has it.
  std::string trouble() const;
  size_t slots() const;
  const PipelineOptions& options() const;

 private:
  struct State;
  State* state_;  // leaked in a forked child: its threads do not exist there, and its locks may be held for ever
};

}  // namespace headrace
