// Decodes the files of samples on one thread, and times the stages of one sample in kTimedShare.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/base/geometry.h"
#include "core/base/trace/stage_stats.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/jpeg/sequential/jpeg_header.h"
#include "core/kernels/resize/kernels.h"
#include "core/pipeline/batch/backend.h"
#include "core/png/png_header.h"

namespace headrace {

/// The header of a file that the native decoder supports, within the limits of `options`. Throws NeedsPillow for every
/// other file.
JpegHeader plain_header(std::span<const uint8_t> bytes, const SampleOptions& options);

/// The same of a PNG.
PngHeader plain_png_header(std::span<const uint8_t> bytes, const SampleOptions& options);

/// Each worker has one: header(), then decode() of the same file. `stats` is the worker's.
class TimedDecoder {
 public:
  /// As plain_header. Also decides whether this file's stages are timed.
  JpegHeader header(std::span<const uint8_t> bytes, const SampleOptions& options, const StageStats& stats);
  /// Call between the two for new memory, which the file's sample is written to: if the file is timed, its pages are
  /// put in place first, as the stage "memory", so that "resize" does not contain it.
  void touch(uint8_t* memory, size_t bytes, StageStats& stats);
  /// As JpegDecoder::decode. The time since header() counts as the stage "header". `after` is called at the end, as
  /// part of the stage "resize".
  void decode(std::span<const uint8_t> bytes, const JpegHeader& header, Box box, RowSink& sink,
              EntryPoints* entry_points, StageStats& stats, const std::function<void()>& after = {});

 private:
  JpegDecoder decoder_{kernels().blocks};
  int since_timed_ = -1;  // samples since the last one that was timed
  bool timed_ = false;
  int64_t begin_ = 0;  // of the header; 0: its time is counted already
};

}  // namespace headrace
