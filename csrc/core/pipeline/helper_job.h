// Samples of a batch that another machine makes, and its answer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/geometry.h"
#include "core/pipeline/batch/batch.h"

namespace headrace {

/// Work for a helper: adjacent samples of a batch, which nobody else makes until the job is finished or put back.
struct HelperJob {
  std::shared_ptr<Batch> batch;  // null: the job is finished
  SampleRun samples;
};

/// What a helper made of the samples of a job. The spans point to the caller's memory.
struct HelperAnswer {
  /// One sample after another: images (height, width, channels) of the recipe's output size, to which all its steps
  /// were done; or, if `finished`, elements in the batch's layout and dtype.
  std::span<const uint8_t> samples;
  bool finished = false;
  std::span<const uint8_t> made;   // for each sample: 0 if the helper has not made it
  std::span<const int32_t> sizes;  // (height, width) of each sample's image before any step; see Batch::sizes
};

/// CRC-32 of bytes that cross a network, as in PNG, zlib and gzip; by libdeflate, several times as fast as zlib's.
uint32_t checksum(std::span<const uint8_t> bytes);

}  // namespace headrace
