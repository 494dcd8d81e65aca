// Windows and integer weights of a resize along one axis, equal to Pillow's or torch's; the same table serves every
// instruction set and the GPU.
#pragma once

#include <cstdint>

#include "core/base/aligned_array.h"
#include "core/base/geometry.h"
#include "core/base/pixel_math.h"
#include "core/plan/plan.h"

namespace headrace {

/// The source positions that outputs [first, first + count) of a resize in -> out read.
Span source_span(int in, int out, Filter filter, int first, int count);

/// Outputs per block of the vector loops; tables are padded to whole blocks.
inline constexpr int kTableBlock = 16;
/// Four taps of each of several windows are in 32 pixels if the windows start within this number of pixels of one
/// another.
inline constexpr int kNearReach = 28;

/// A table for the inner loops. Plain pointers, since the files of the loops must not instantiate inline functions with
/// their instruction set.
struct TableView {
  int count = 0;
  int taps_stride = 0;
  const int32_t* start = nullptr;
  const int32_t* taps = nullptr;
  const int32_t* weight = nullptr;
  const int8_t* digits = nullptr;
  const uint32_t* near = nullptr;
};

/// For each of `out` positions in [first, first + count): window start, taps, and weights in units of 2^-22. torch's
/// weights are coarser: their lowest bits are zero.
/// Weights are stored `taps_stride` apart (a multiple of 4, zero beyond a window's taps). All arrays are padded to
/// whole blocks of kTableBlock outputs with copies of the last window and weights of zero, and are aligned to cache
/// lines.
struct ResampleTable {
  int count = 0;
  int taps_stride = 0;
  AlignedArray<int32_t> start;   // first source position of the window; never decreases
  AlignedArray<int32_t> taps;    // length of the window
  AlignedArray<int32_t> weight;  // [output][taps_stride]

  // For instructions that multiply or shuffle bytes: the weights split into signed bytes,
  // weight = (digit[2] << 16) + (digit[1] << 8) + digit[0]:
  // [output / kTableBlock][taps_stride / 4][digit][output % kTableBlock][tap % 4].
  AlignedArray<int8_t> digits;
  // Byte offsets of an output's first four taps in the RGBX pixels that begin at its block's first window, one byte
  // each. Invalid if the windows of the block start more than kNearReach pixels apart.
  AlignedArray<uint32_t> near;

  /// Table of the resize in -> out for outputs [first, first + count). Reuses its memory. One that takes single pixels
  /// gives single taps of weight 1. Starts are relative to source position `origin`.
  void build(int in, int out, Filter filter, int first, int count, int origin = 0);
  /// The source positions that the table reads, relative to `origin`.
  Span span() const { return {start[0], start[count - 1] + taps[count - 1]}; }
  TableView view() const {
    return {count, taps_stride, start.data(), taps.data(), weight.data(), digits.data(), near.data()};
  }

 private:
  template <class Shape>
  void weigh(int in, int out, int first, int bits);
  void nearest(int in, int out, Filter filter, int first);
  void finish(int origin);

  AlignedArray<double> real_;  // weights of a block before rounding, [tap][output % kTableBlock]
};

}  // namespace headrace
