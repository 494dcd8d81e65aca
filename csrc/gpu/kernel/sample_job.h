// The arguments of the kernels: plain records, with the same layout on the host and on the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/jpeg/planes/planar_image.h"
#include "core/kernels/effects/effect_math.h"
#include "core/kernels/warp/warp_math.h"

// How often a GPU's compiler repeats the body of the loop that follows. 1: copies of a long body would cost registers
// and instruction cache.
#if defined(__CUDACC__)
#define HEADRACE_PRAGMA(text) _Pragma(#text)
#define HEADRACE_UNROLL(times) HEADRACE_PRAGMA(unroll times)
#else
#define HEADRACE_UNROLL(times)
#endif

namespace headrace {

/// Edge of the square of outputs that one block makes, and number of threads of a block.
inline constexpr int kTile = 32, kBlockThreads = 256;

/// Maps, along one axis, positions of a window to positions of an image.
struct TakeAxis {
  int32_t begin = 0, size = 0;  // the window, in pixels of the image
  int32_t image = 0;            // size of the image in pixels
  bool flip = false;

  /// The position of the image that position `i` of the window shows, before padding: it may be outside.
  HEADRACE_HD int unpadded(int i) const { return begin + (flip ? size - 1 - i : i); }
  /// The position of the image that position `i` shows; -1: fill.
  HEADRACE_HD int at(int i, PadMode pad) const { return padded_source(unpadded(i), image, pad); }
  /// Whether positions [from, to) show the image, and no padding.
  HEADRACE_HD bool inside(int from, int to) const {
    const int a = unpadded(from), b = unpadded(to - 1);
    return a >= 0 && b >= 0 && a < image && b < image;
  }
};

/// A Take of plan.h over an image of a known size.
struct TakeMap {
  TakeAxis x, y;
  PadMode pad = PadMode::kConstant;
  bool gray = false;
  uint32_t fill = 0;  // packed

  /// The column of the image that column `u` of the window shows; -1: fill.
  HEADRACE_HD int column(int u) const { return x.at(u, pad); }
  /// The row of the image that row `v` of the window shows; -1: fill.
  HEADRACE_HD int row(int v) const { return y.at(v, pad); }
  /// A packed pixel of the image after the take: gray, or unchanged.
  HEADRACE_HD uint32_t gray_if_needed(uint32_t pixel) const {
    if (!gray) return pixel;
    const int l = luma(pixel & 255, pixel >> 8 & 255, pixel >> 16 & 255);
    return pack_rgbx(l, l, l);
  }
};

/// The positions [begin, end) that one output is made from, and the place of the first one's weight.
struct Window {
  int32_t begin = 0, end = 0;
  const int32_t* weight = nullptr;
};

/// A ResampleTable's windows and weights for outputs from `first` on; fixed point with kWeightBits bits. An axis that
/// keeps its size has windows of a single position with weight 1.
struct AxisWindows {
  const int32_t* start = nullptr;
  const int32_t* taps = nullptr;
  // [position in the window][output]: neighbouring threads load neighbours. Zero after a window's end up to most_taps;
  // kTile more may be read.
  const int32_t* weight = nullptr;
  int32_t outputs = 0, first = 0, most_taps = 0;

  /// The window of an output of the whole axis.
  HEADRACE_HD Window window(int output) const {
    const int i = output - first;
    return {start[i], start[i] + taps[i], weight + i};
  }
};

/// Effects on a sample's picture, and the take after them. `count` 0: the fused kernel writes the output itself.
struct Retouch {
  const Effect* effects = nullptr;
  int32_t count = 0;
  uint32_t* picture = nullptr;  // packed pixels, without gaps
  uint32_t* other = nullptr;    // memory for a second picture; null where no effect reads other pixels
  const float* weights = nullptr;
  const WarpJob* warps = nullptr;
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
  bool skip = false;  // the sample has failed: nothing is written
};

/// Parameters that all samples of a launch share. Strides in bytes.
struct OutputFormat {
  int32_t width = 0, height = 0, channels = 3, element_bytes = 4;
  int64_t channel_stride = 0, row_stride = 0, pixel_stride = 0;
  const void* lut = nullptr;     // [channels][256] elements
  const void* erased = nullptr;  // [row][channels] elements
};

/// The arguments of one launch: the fused kernel with a block for each tile, then, where there are effects, the retouch
/// kernel with a block for each sample.
struct FuseLaunch {
  const SampleJob* jobs = nullptr;
  int32_t samples = 0;
  OutputFormat format;
  int32_t width = 0, height = 0;  // of the grid in pixels: the largest picture fits
  bool retouches = false;         // a sample has effects

  HEADRACE_HD int tiles_x() const { return (width + kTile - 1) / kTile; }
  HEADRACE_HD int tiles_y() const { return (height + kTile - 1) / kTile; }
  HEADRACE_HD int tiles() const { return tiles_x() * tiles_y(); }
};

}  // namespace headrace
