// Batches in, batches out: the core's public interface, which runs every stage of a sample.
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

#include "core/base/trace/recorder.h"
#include "core/base/trace/stage_stats.h"
#include "core/kernels/resize/kernels.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/batch.h"
#include "core/pipeline/batch/stage_report.h"
#include "core/pipeline/helper_job.h"
#include "core/pipeline/python_lane.h"
#include "core/plan/plan.h"

namespace headrace {

/// How a pipeline makes its batches.
struct PipelineOptions : SampleOptions {
  int threads = 0;                     // 0: callers of run_one() do the work
  size_t slots_kept = 3;               // most free slots that stay mapped
  const Kernels* kernels = nullptr;    // null: the fastest that this processor supports
  std::shared_ptr<Backend> backend;    // null: this machine's memory
  std::shared_ptr<Recorder> recorder;  // null: no recording
};

/// Any thread may call any method. In a process that forked after the construction, most of them throw
/// std::logic_error.
class Pipeline {
 public:
  explicit Pipeline(PipelineOptions options);
  /// Calls close() and waits until the workers have finished their samples.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Queues a batch of rows of `blobs`. `draws`: [rows][recipe.draws]. `memory`: where to write the batch; it must live
  /// until the batch is ready or cancel() has returned. Null: memory of the backend. Throws as Batch::fill and
  /// Backend::prepare do. `entry_points`, `plans`: see Batch. With plans, which need a recipe without steps, throws
  /// std::invalid_argument where there is not one for each sample and view, or one does not fit the recipe.
  std::shared_ptr<Batch> submit(std::shared_ptr<const BlobTable> blobs, std::vector<int64_t> rows,
                                std::vector<double> draws, BatchMemory memory,
                                std::shared_ptr<EntryPoints> entry_points = nullptr, std::vector<GivenPlan> plans = {});
  /// Makes other samples at some positions (`places`) of a batch that is ready, before all queued batches. Uses the
  /// batch's entry points. Throws std::logic_error for a batch with plans.
  std::shared_ptr<Batch> repair(const Batch& batch, std::vector<int> places, std::shared_ptr<const BlobTable> blobs,
                                std::vector<int64_t> rows, std::vector<double> draws);

  /// True once every sample of the batch is made or has failed; false when `patience` ran out, and after close() or
  /// cancel().
  bool wait(const Batch& batch, std::chrono::milliseconds patience);
  /// Makes work that the caller puts on `stream`, of a device, after this call see the batch, which must be ready.
  void hand_over(Batch& batch, uintptr_t stream);
  /// Stops a batch: workers begin no further sample of it. A slot of the pool lives until the last worker is done with
  /// it. If the caller passed the memory, this blocks until no thread writes to it (a few milliseconds).
  void cancel(Batch& batch);

  /// Moves the samples at `places`, ascending, to the front of a batch that is ready. This machine's memory only.
  void compact(const Batch& batch, std::span<const int> places) const;

  /// Without threads: makes the next queued sample in the calling thread; false: none is queued. Callers take turns.
  bool run_one();

  /// Work for Python: files that Pillow decodes, or of audio other libraries, and calls of steps that are not native.
  /// Waits up to `patience`; nullopt: there was none.
  std::optional<PythonJob> next_pillow_job(std::chrono::milliseconds patience);
  size_t pillow_jobs_waiting() const;
  std::optional<PythonJob> next_call(std::chrono::milliseconds patience);
  size_t calls_waiting() const;
  /// Ends a job with an image that Pillow decoded or a call returned: the recipe's next steps run on it. `python_ns`:
  /// time spent in Python. Throws std::logic_error where the job is finished.
  void finish(PythonJob& job, const RawImage& image, int64_t python_ns);
  /// Ends a job with the elements of the whole sample, in the batch's layout. This machine's memory only. Throws
  /// std::invalid_argument where their number is wrong, std::logic_error where the job is finished. `opened`, if not
  /// empty: becomes the sample's entry of Batch::sizes.
  void finish_elements(PythonJob& job, std::span<const uint8_t> elements, int64_t python_ns, Size opened = {});
  /// Returns a job to the front of its queue. Does nothing where the job is finished.
  void put_back(PythonJob& job);
  /// Ends a job with a failure: Python raised. Throws std::logic_error where the job is finished.
  void fail(PythonJob& job, std::string reason);

  /// Samples that another machine makes: up to `most`, if more than `keep` are queued here. Waits up to `patience`;
  /// nullopt: fewer are queued.
  std::optional<HelperJob> next_helper_job(int most, int keep, std::chrono::milliseconds patience);
  /// Replaces `files` by the bytes of the files of a job's samples, one after another, and returns the number of bytes
  /// of each; 0 of a file that cannot be read, or not as a whole, and of files after the first 16 MiB.
  std::vector<int64_t> read_files(const HelperJob& job, std::vector<uint8_t>& files);
  /// Ends a job with what a helper made of its samples. Those that are not `made` are made here. Throws
  /// std::invalid_argument where `answer` does not fit the job, std::logic_error where the job is finished.
  void finish(HelperJob& job, const HelperAnswer& answer);
  /// Returns the samples of a job: they are made here, before all others. Does nothing where the job is finished.
  void put_back(HelperJob& job);

  /// Drops queued samples and jobs, wakes all waiting threads and unmaps free slots. Idempotent.
  void close();
  bool closed() const;
  /// After close(): true once every worker thread has ended, false after `patience`. Then the destructor would block; a
  /// caller that must not block leaks the pipeline and all memory that its tables point to.
  bool settle(std::chrono::milliseconds patience);

  /// Totals of each stage so far.
  std::vector<StageReport> stats() const;
  /// Bytes of the blobs that were read so far, from files or memory.
  int64_t bytes_read() const;
  /// The ids, in the operating system, of the threads that have begun, including those that resize() put to sleep.
  std::vector<int64_t> thread_ids() const;
  /// Lets `count` threads, 1 or more, take samples: adds threads, or lets some sleep once they have finished their
  /// samples. Batches do not depend on it. Does nothing after close(). Throws std::invalid_argument, std::system_error
  /// where the system allows no more threads, and std::logic_error if the pipeline was made without threads.
  void resize(int count);
  /// Number of threads that take samples, and of those that resize() lets sleep.
  int threads() const;
  int asleep() const;
  /// Restricts all threads, including later ones, to these CPUs. Throws std::system_error if they cannot run there.
  void bind_threads(std::span<const int> cpus);
  /// See DeviceSide::trouble.
  std::string trouble() const;
  /// See Backend::slots.
  size_t slots() const;
  const PipelineOptions& options() const;

 private:
  struct State;
  State* state_;  // leaked in a forked child: its threads do not exist there, and its locks may stay held
};

}  // namespace headrace
