// Windows and 22-bit weights of Pillow's resize along one axis; the same table serves every instruction set and the
// GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "plan.h"

namespace headrace {

/// 22 bits: 8 for the result, 2 spare, since weights can be negative and sum to over 1 (Pillow, Resample.c).
inline constexpr int kWeightBits = 22;

/// Positions [begin, end) along one axis.
struct Span {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
};

/// The source positions that outputs [first, first + count) of a resize in -> out read.
Span source_span(int in, int out, Filter filter, int first, int count);

/// For each of `out` positions in [first, first + count): window start, taps, and integer weights.
/// Weights are stored `taps_stride` apart (a multiple of 4, zero beyond a window's taps).
struct ResampleTable {
  int count = 0;
  int taps_stride = 0;
  std::vector<int32_t> start;   // [count] first source position of the window; never falls from one to the next
  std::vector<int32_t> taps;    // [count] length of the window
  std::vector<int32_t> weight;  // [count * taps_stride]
  // The weights again, split into signed bytes, weight = (digit[2] << 16) + (digit[1] << 8) + digit[0], four taps to a
  // 32-bit word, laid out [count][taps_stride / 4][3]: for instructions that multiply bytes.
  std::vector<int8_t> digits;

  /// Table of the resize in -> out for outputs [first, first + count). Reuses its memory. kNearest gives single taps of
  /// weight 1. Starts count from source position `origin`.
  void build(int in, int out, Filter filter, int first, int count, int origin = 0);
  /// The source positions read, counted from `origin`.
  Span span() const { return {start.front(), start.back() + taps.back()}; }

 private:
  std::vector<double> real_;  // weights before rounding
};

}  // namespace headrace
