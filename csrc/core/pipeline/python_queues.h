// The queues of samples that wait for Python: files that Pillow decodes, and images for steps that are not native.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/pool.h"
#include "core/base/trace/durations.h"
#include "core/base/trace/recorder.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/stage_report.h"
#include "core/pipeline/python_lane.h"
#include "core/pipeline/workers/segment_maker.h"

namespace headrace {

/// Any thread may call any method.
class PythonQueues {
 public:
  /// All arguments must outlive this.
  PythonQueues(const SampleOptions& options, const Kernels& kernels, Recorder& recorder)
      : options_(options), kernels_(kernels), recorder_(recorder), has_calls_(options.recipe.last_segment() > 0) {}

  /// Whether the recipe has steps that run in Python. Then the native steps run in segments, between these calls.
  bool has_calls() const { return has_calls_; }
  /// Whether step `from` or a later one runs in Python.
  bool has_call_from(size_t from) const { return options_.recipe.call_after(from) < options_.recipe.steps.size(); }

  /// The recipe's first call, with its image, to be pushed to `calls`. Throws as SegmentMaker does.
  PythonJob call_with_file(const std::shared_ptr<Batch>& batch, int sample, std::span<const uint8_t> bytes,
                           const double* draws);
  /// The same of the next call: runs the steps from `from` up to it on an image.
  PythonJob call_with_pixels(const std::shared_ptr<Batch>& batch, int sample, size_t from, const RawImage& image,
                             const double* draws);

  /// Pops a job of `lane`, which is `pillow` or `calls`, and records the wait.
  std::optional<PythonJob> next(PythonLane& lane, std::chrono::milliseconds patience);
  /// Finishes a job and returns its batch. `ns`: time spent in Python, up to now. Throws std::logic_error where the job
  /// is finished.
  std::shared_ptr<Batch> take_back(PythonJob& job, int64_t ns);

  /// Items and time of both kinds of jobs.
  std::vector<StageReport> stats() const;
  /// Drops waiting jobs and wakes all waiting threads.
  void close();

  PythonLane pillow, calls;

 private:
  template <class Make>
  PythonJob call_next(const std::shared_ptr<Batch>& batch, int sample, size_t from, Make make);

  struct Time {
    std::atomic<int64_t> items{0}, ns{0};
    Durations durations;
  };

  const SampleOptions& options_;
  const Kernels& kernels_;
  Recorder& recorder_;
  const bool has_calls_;
  Pool<SegmentMaker> makers_;
  Time pillow_time_, call_time_;
};

}  // namespace headrace
