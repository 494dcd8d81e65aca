// The samples in Python's hands: files that Pillow decodes, calls of steps that are not native, and what leads to them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/pool.h"
#include "core/batch/backend.h"
#include "core/batch/stage_report.h"
#include "core/making/segment_maker.h"
#include "core/pipeline/python_lane.h"
#include "core/trace/recorder.h"

namespace headrace {

/// Every method may be called from any thread.
class PythonDesk {
 public:
  /// `options` and `recorder` must outlive this.
  PythonDesk(const SampleOptions& options, const Kernels& kernels, Recorder& recorder)
      : options_(options), kernels_(kernels), recorder_(recorder), has_calls_(options.recipe.last_segment() > 0) {}

  /// Whether the recipe has steps that Python does; then no sample is made from a file at one go.
  bool has_calls() const { return has_calls_; }
  bool has_call_from(size_t from) const { return options_.recipe.call_after(from) < options_.recipe.steps.size(); }

  /// Makes the image that the recipe's first call takes, and queues the call. Throws as SegmentMaker does.
  void call_with_file(const std::shared_ptr<Batch>& batch, int sample, std::span<const uint8_t> bytes,
                      const double* draws);
  /// The same for the next call from step `from` on, and an image as it is there.
  void call_with_pixels(const std::shared_ptr<Batch>& batch, int sample, size_t from, const RawImage& image,
                        const double* draws);

  /// The next job of `pillow` or of `calls`, as it pops it.
  std::optional<PythonJob> next(PythonLane& lane, std::chrono::milliseconds patience);
  /// Takes a job out of Python's hands, once; it took so long, up to now. Throws std::logic_error for one that is
  /// finished.
  std::shared_ptr<Batch> take_back(PythonJob& job, int64_t ns);

  std::vector<StageReport> stats() const;
  /// Wakes everybody; what waits is dropped.
  void close();

  PythonLane pillow, calls;

 private:
  template <class Make>
  void call_next(const std::shared_ptr<Batch>& batch, int sample, size_t from, Make make);

  struct Time {
    std::atomic<int64_t> items{0}, ns{0};
  };

  const SampleOptions& options_;
  const Kernels& kernels_;
  Recorder& recorder_;
  const bool has_calls_;
  Pool<SegmentMaker> makers_;
  Time pillow_time_, call_time_;
};

}  // namespace headrace
