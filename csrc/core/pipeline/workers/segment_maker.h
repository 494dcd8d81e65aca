// Makes the input images of Python steps: decodes or reads pixels, runs the native steps before them, keeps RGBX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/fuse/fuse.h"
#include "core/fuse/sinks/raw_rows.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/pipeline/batch/backend.h"

namespace headrace {

/// An image in memory.
struct RgbxImage {
  std::vector<uint8_t> pixels;  // RGBX, rows without gaps
  Size size;
};

/// Not thread-safe.
class SegmentMaker {
 public:
  /// `kernels` must outlive this.
  explicit SegmentMaker(const Kernels& kernels) : decoder_(kernels.blocks), fuser_(kernels), raw_rows_(kernels) {}

  /// Decodes a file and runs the steps before the recipe's first call; sets `opened` to the size of the file's image.
  /// Throws NeedsPillow, or Error(kPlan). `entry_points`: as in JpegDecoder::decode.
  RgbxImage from_file(std::span<const uint8_t> bytes, const double* draws, const SampleOptions& options, Size& opened,
                      EntryPoints* entry_points);
  /// Runs the steps from `from` up to the next call on an image. Throws Error(kPlan).
  RgbxImage from_pixels(const RawImage& image, const double* draws, const SampleOptions& options, size_t from);

 private:
  JpegDecoder decoder_;
  Fuser fuser_;
  RawRows raw_rows_;
};

}  // namespace headrace
