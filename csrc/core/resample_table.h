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

/// Outputs per block of the vector loops; tables are padded to whole blocks.
inline constexpr int kTableBlock = 16;

/// A table as the inner loops see it. Plain pointers, since those files must not instantiate std::vector with their own
/// instruction set.
struct TableView {
  int count = 0;
  int taps_stride = 0;
  int block_reach = 0;
  const int32_t* start = nullptr;
  const int32_t* taps = nullptr;
  const int32_t* weight = nullptr;
  const int8_t* digits = nullptr;
};

/// For each of `out` positions in [first, first + count): window start, taps, and integer weights.
/// Weights are stored `taps_stride` apart (a multiple of 4, zero beyond a window's taps). All is padded to whole blocks
/// of kTableBlock outputs with copies of the last window and weights of zero.
struct ResampleTable {
  int count = 0;
  int taps_stride = 0;
  int block_reach = 0;          // the most that start[last of a block] - start[first of it] is
  std::vector<int32_t> start;   // first source position of the window; never falls from one to the next
  std::vector<int32_t> taps;    // length of the window
  std::vector<int32_t> weight;  // [output][taps_stride]
  // The weights again, split into signed bytes, weight = (digit[2] << 16) + (digit[1] << 8) + digit[0], for
  // instructions that multiply bytes: [output / kTableBlock][taps_stride / 4][digit][output % kTableBlock][tap % 4].
  std::vector<int8_t> digits;

  /// Table of the resize in -> out for outputs [first, first + count). Reuses its memory. kNearest gives single taps of
  /// weight 1. Starts count from source position `origin`.
  void build(int in, int out, Filter filter, int first, int count, int origin = 0);
  /// The source positions read, counted from `origin`.
  Span span() const { return {start[0], start[count - 1] + taps[count - 1]}; }
  TableView view() const {
    return {count, taps_stride, block_reach, start.data(), taps.data(), weight.data(), digits.data()};
  }

 private:
  void split_weights();

  std::vector<double> real_;  // weights before rounding
};

}  // namespace headrace
