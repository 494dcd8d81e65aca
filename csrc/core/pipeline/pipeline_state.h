// The state that a pipeline's threads share, and the stages that each sample passes.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/base/fork_guard.h"
#include "core/base/pool.h"
#include "core/base/thread_pool.h"
#include "core/io/source/read_ahead.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/device_side.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/python_queues.h"
#include "core/pipeline/sample_queue.h"

namespace headrace {

/// Any thread may call any method.
///
/// Every sample is counted as done exactly once: by the thread that makes it, or, where it was passed on to Python or
/// to a device's decoder, by the call that returns it.
struct Pipeline::State final : PipelineHooks {
  explicit State(PipelineOptions given);

  // PipelineHooks: the device's threads call these.
  void sample_made(const std::shared_ptr<Batch>& batch) override { done(batch); }
  void make_here(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample,
                 std::span<const uint8_t> bytes) override {
    make_from_file(worker, batch, sample, bytes, false);
  }
  void stealable_added() override { queue.wake(); }
  void batch_ready(Batch& batch) override;
  Recorder& recorder() override { return *records; }

  std::unique_ptr<SampleWorker> new_worker();
  std::shared_ptr<Batch> new_batch() { return device != nullptr ? device->new_batch() : std::make_shared<Batch>(); }

  /// Reads and makes a sample, or passes it on to Python or the device.
  void make(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample);
  /// Runs the recipe on an image, starting at step `from`. Nothing: the sample is made; else the Python call that it
  /// needs next, see hand_on().
  std::optional<PythonJob> make_from_step(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample,
                                          size_t from, const RawImage& image);
  /// Queues a call. False: there is none, and the sample is made.
  bool hand_on(std::optional<PythonJob> call);
  /// Makes one sample that was offloaded to the device; false: there is none.
  bool steal(SampleWorker& worker);
  /// Counts one sample as made or failed, and completes the batch with the last one.
  void done(const std::shared_ptr<Batch>& batch);
  /// Takes the job's batch from it. Throws std::logic_error where the job is finished, or the process forked.
  std::shared_ptr<Batch> take_back(PythonJob& job, int64_t ns);

  /// Calls `body`, which writes the sample, and records what it throws as the sample's failure. False: the batch is
  /// cancelled, and `body` was not called.
  template <typename Body>
  bool guarded(Batch& batch, int sample, Stage stage, Body body) {
    if (!batch.begin_writing()) {
      wake();  // cancel() may have counted this thread as a writer
      return false;
    }
    batch.attempt(sample, stage, body);
    end_writing(batch);
    return true;
  }

  /// See Pipeline::resize.
  void resize(int count);
  /// Calls `visit` with each worker, including the inline one; none is added meanwhile.
  template <typename Visit>
  void each_worker(Visit visit) const {
    const std::lock_guard lock(crew);
    for (const auto& worker : workers) visit(*worker);
  }

  /// Wakes the threads in wait() and cancel(), which check their conditions again.
  void wake();
  /// Throws std::logic_error in a process forked after the construction.
  void check_process() const;

  const PipelineOptions options;
  const std::shared_ptr<Recorder> records;
  const std::shared_ptr<Backend> backend;
  DeviceSide* const device;  // the backend's; null: batches are in this machine's memory
  const ForkGuard fork;
  SampleQueue queue;
  ReadAhead read_ahead;
  PythonQueues python;
  std::mutex mutex;
  std::condition_variable changed;  // some batch is ready or cancelled, or the pipeline is closed
  bool closed = false;              // guarded by mutex
  std::mutex inline_mutex;          // held in run_one(): two iterators may share a pipeline and its one worker
  Pool<SampleWorker> spare;         // for the threads that bring samples back from Python
  mutable std::mutex crew;          // guards the three below, not what a worker does
  int wanted;                       // number of threads that take samples
  std::vector<std::unique_ptr<SampleWorker>> workers;
  ThreadPool threads;

 private:
  /// Adds threads up to `count`, and workers for them. Under `crew`, or before any other thread knows this.
  void start_threads(int count);
  void work(SampleWorker& worker, int number);
  /// Prepares the read of a sample that comes later than this one.
  void prepare_later(const std::shared_ptr<Batch>& batch, int sample);
  /// Makes a sample from its file's bytes, or hands it on: to the call lane, the Pillow lane or, if may_offload, the
  /// device. The thread that finishes a sample counts it, see done().
  void make_from_file(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample,
                      std::span<const uint8_t> bytes, bool may_offload);
  /// Decodes a PNG and runs the recipe on it, as make_from_step does. Throws NeedsPillow.
  std::optional<PythonJob> make_from_png(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample,
                                         std::span<const uint8_t> bytes);
  void make_from_pixels(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample, const RawImage& image);
  /// Makes a sample by a worker that reads files itself, or hands it on to the Pillow lane.
  void make_from_path(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample, const char* path);
  /// Copies a row of columns.
  void gather(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample, const Blob& blob);
  void end_writing(Batch& batch);
  const double* draws(const Batch& batch, int sample) const;
};

}  // namespace headrace
