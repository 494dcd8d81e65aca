// What the kernels are told about one sample: plain records, the same on the host and on the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../core/effect_math.h"
#include "../core/planar_image.h"

namespace headrace {

/// A Take of plan.h over an image of a known size.
struct TakeMap {
  int32_t x = 0, y = 0, width = 0, height = 0;  // the window
  int32_t image_width = 0, image_height = 0;
  bool flip_x = false, flip_y = false, gray = false;
  PadMode pad = PadMode::kConstant;
  uint32_t fill = 0;  // packed

  /// The column of the image that column `u` of the window shows; -1: fill.
  HEADRACE_HD int column(int u) const { return padded_source(x + (flip_x ? width - 1 - u : u), image_width, pad); }
  HEADRACE_HD int row(int v) const { return padded_source(y + (flip_y ? height - 1 - v : v), image_height, pad); }
  /// What a pixel of the image, packed, is after the take.
  HEADRACE_HD uint32_t tint(uint32_t pixel) const {
    if (!gray) return pixel;
    const int l = luma(pixel & 255, pixel >> 8 & 255, pixel >> 16 & 255);
    return packed(l, l, l);
  }
};

/// A ResampleTable's windows and weights for outputs from `first` on; without them the axis keeps its size.
struct AxisWindows {
  const int32_t* start = nullptr;
  const int32_t* taps = nullptr;
  const int32_t* weight = nullptr;  // [output][stride]
  int32_t stride = 0, first = 0;

  HEADRACE_HD int begin(int i) const { return start ? start[i - first] : i; }
  HEADRACE_HD int end(int i) const { return start ? start[i - first] + taps[i - first] : i + 1; }
  /// Of position `at`, which lies in [begin(i), end(i)).
  HEADRACE_HD int32_t weight_of(int i, int at) const {
    return start ? weight[static_cast<ptrdiff_t>(i - first) * stride + (at - start[i - first])] : 1 << kWeightBits;
  }
};

/// Effects on a sample's picture, and what is taken from it afterwards. Without effects the picture is the output.
struct Retouch {
  const Effect* effects = nullptr;
  int32_t count = 0;
  uint32_t* picture = nullptr;  // packed pixels, without gaps
  uint32_t* other = nullptr;    // room for another such picture, where an effect is a blur
  const float* weights = nullptr;
  TakeMap after;
};

/// A plan of at most one resize: image, take, resize, take, effects, take, element table, erased boxes, output.
struct SampleJob {
  PlanarImage image;
  TakeMap first;
  AxisWindows x, y;
  TakeMap last;
  Retouch retouch;
  const Erased* erased = nullptr;
  int32_t erased_count = 0;
  uint8_t* output = nullptr;  // the sample's first element
  bool vertical_first = false;
  bool skip = false;  // it could not be made: nothing is written
};

/// What all samples of a launch share. Strides in bytes.
struct OutputFormat {
  int32_t width = 0, height = 0, channels = 3, element_bytes = 4;
  int64_t channel_stride = 0, row_stride = 0, pixel_stride = 0;
  const void* lut = nullptr;     // [channels][256] elements
  const void* erased = nullptr;  // [value][channels] elements
};

/// Edge of the square of outputs that one block makes, and its threads.
inline constexpr int kTile = 32, kBlockThreads = 256;

/// First every tile of every picture is made, then the samples with effects are retouched, a block each.
struct FuseLaunch {
  const SampleJob* jobs = nullptr;
  int32_t samples = 0;
  OutputFormat format;
  int32_t width = 0, height = 0;  // that hold every picture
  bool retouches = false;         // some sample has effects

  HEADRACE_HD int tiles_x() const { return (width + kTile - 1) / kTile; }
  HEADRACE_HD int tiles_y() const { return (height + kTile - 1) / kTile; }
  HEADRACE_HD int blocks() const { return samples * tiles_x() * tiles_y(); }
};

}  // namespace headrace
