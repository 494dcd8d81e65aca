// What makes single samples on one thread, whatever their memory is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/geometry.h"
#include "core/batch/batch.h"
#include "core/source/blob.h"
#include "core/source/reader.h"
#include "core/trace/stage_stats.h"

namespace headrace {

/// One a thread, never shared.
class SampleWorker {
 public:
  virtual ~SampleWorker() = default;

  /// The blob's bytes, valid until the next call. Throws Error(kRead); NeedsPillow for a file not to be read whole.
  std::span<const uint8_t> read(const Blob& blob) {
    const int64_t begin = now_ns();
    const auto bytes = reader_.read(blob);
    stats.add(Clock::kRead, begin, now_ns());
    return bytes;
  }

  /// Makes a sample of a batch from its bytes; or, where `may_hand_on`, hands it on to whoever else of the backend can:
  /// that one then tells the pipeline. Whether it is made. Throws NeedsPillow, or Error(kPlan) where a step cannot be
  /// applied.
  virtual bool make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch,
                    int sample, bool may_hand_on) = 0;
  /// The same for an image that is decoded already.
  virtual void make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) = 0;

  /// Counters of this thread, which any thread may read.
  StageStats stats;

 private:
  Reader reader_;
};

}  // namespace headrace
