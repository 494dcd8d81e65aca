// Makes images up to a step that Python does: decodes or takes over pixels, runs the steps before it, keeps RGBX.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch/backend.h"
#include "core/fuse/fuse.h"
#include "core/jpeg/jpeg_decoder.h"
#include "core/rows/raw_rows.h"

namespace headrace {

struct RgbxImage {
  std::vector<uint8_t> pixels;  // rows without gaps
  Size size;
};

/// One a thread at a time.
class SegmentMaker {
 public:
  explicit SegmentMaker(const Kernels& kernels) : fuser_(kernels) {}

  /// A file, after the steps up to the recipe's first call. Throws NeedsPillow, or Error(kPlan).
  RgbxImage from_file(std::span<const uint8_t> bytes, const double* draws, const SampleOptions& options);
  /// An image after the steps from `from` up to the next call. Throws Error(kPlan).
  RgbxImage from_pixels(const RawImage& image, const double* draws, const SampleOptions& options, size_t from);

 private:
  JpegDecoder decoder_;
  Fuser fuser_;
  RawRows raw_rows_;
};

}  // namespace headrace
