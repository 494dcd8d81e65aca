// Makes single samples on one thread: reads, looks at the header, plans, decodes and fuses. One a thread, never shared.
#pragma once

#include <cstdint>
#include <span>

#include "blob.h"
#include "fuse.h"
#include "jpeg_decoder.h"
#include "plan.h"
#include "reader.h"
#include "stage_stats.h"

namespace headrace {

class SampleMaker {
 public:
  /// `recipe` must outlive this. Images of more than `max_pixels` are left to Pillow; 0: no limit.
  SampleMaker(const Kernels& kernels, const Recipe& recipe, int64_t max_pixels)
      : recipe_(recipe), max_pixels_(max_pixels), fuser_(kernels) {}

  /// The blob's bytes, valid until the next call. Throws Error(kRead).
  std::span<const uint8_t> read(const Blob& blob);
  /// Writes the whole sample. Throws NeedsPillow, or Error(kPlan) where a step cannot be applied.
  void make(std::span<const uint8_t> bytes, const double* draws, const Output& output);

  /// Counters of this thread, which any thread may read.
  StageStats stats;

 private:
  const Recipe& recipe_;
  const int64_t max_pixels_;
  Reader reader_;
  JpegDecoder decoder_;
  Fuser fuser_;
  int since_timed_ = -1;
};

}  // namespace headrace
