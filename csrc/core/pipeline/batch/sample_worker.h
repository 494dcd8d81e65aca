// The interface of workers, which make single samples on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "core/base/geometry.h"
#include "core/base/trace/stage_stats.h"
#include "core/io/source/blob.h"
#include "core/io/source/reader.h"
#include "core/pipeline/batch/batch.h"
#include "core/png/png_decoder.h"

namespace headrace {

/// One in this number of samples is timed stage by stage: the two clock calls around each stage cost about 1 % of a
/// sample. While a recording runs, all samples are timed.
inline constexpr int kTimedShare = 16;

/// Not thread-safe: each thread has its own.
class SampleWorker {
 public:
  virtual ~SampleWorker() = default;

  /// The blob's bytes, valid until the next call. Throws Error(kRead), or NeedsPillow for a file that must not be read
  /// as a whole.
  std::span<const uint8_t> read(const Blob& blob, const std::atomic<bool>& cancelled) {
    const int64_t begin = now_ns();
    const auto bytes = reader_.read(blob, cancelled);
    stats.add(Clock::kRead, begin, now_ns());
    stats.add_bytes(bytes.size());
    return bytes;
  }

  /// The pixels of a PNG, valid until the next call; see PngDecoder::decode.
  RawImage decode(const PngHeader& header, PngWanted wanted) {
    if (!png_) png_.emplace();
    return png_->decode(header, wanted);
  }

  /// Makes a sample of a batch from its file's bytes, a JPEG's, and returns true; or, if `may_offload`, leaves its
  /// decoding to the device and returns false: the device then calls PipelineHooks. Throws NeedsPillow, or Error(kPlan)
  /// where a step cannot be applied.
  virtual bool make(std::span<const uint8_t> bytes, const double* draws, const std::shared_ptr<Batch>& batch,
                    int sample, bool may_offload) = 0;
  /// Makes a sample of a batch from an image that is decoded already. Throws Error(kPlan).
  virtual void make_from_pixels(const RawImage& image, const double* draws, Batch& batch, int sample) = 0;
  /// Stores an image of the output's size as a sample of a batch: all steps of the recipe were done to it elsewhere.
  /// Throws std::logic_error where this worker cannot.
  virtual void store(const RawImage& /*image*/, Batch& /*batch*/, int /*sample*/) {
    throw std::logic_error("this pipeline makes samples only here");
  }
  /// Makes a sample of a batch from a row of `columns`. Throws std::logic_error where this worker makes images.
  virtual void gather(const Columns& /*columns*/, int64_t /*row*/, Batch& /*batch*/, int /*sample*/) {
    throw std::logic_error("this pipeline makes images, not rows of columns");
  }

  /// Whether this worker reads what it needs of a file itself: then make_from_file is called, and read and make are
  /// not.
  virtual bool reads_files() const { return false; }
  /// Makes a sample of a batch from the file at `path`. Returns why a Python thread has to make it; nullopt: it is
  /// made. Throws Error(kRead).
  virtual std::optional<std::string> make_from_file(const char* /*path*/, const double* /*draws*/, Batch& /*batch*/,
                                                    int /*sample*/) {
    throw std::logic_error("this pipeline reads whole files");
  }

  /// Counters of this thread. Any thread may read them.
  StageStats stats;

 private:
  Reader reader_;
  std::optional<PngDecoder> png_;  // made for the first PNG
};

}  // namespace headrace
