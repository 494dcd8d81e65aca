// Windows and float weights of a resize along one axis, equal to those of torch's antialiased kernels for floats.
#pragma once

#include <cstdint>

#include "core/base/aligned_array.h"
#include "core/base/geometry.h"
#include "core/plan/plan.h"

namespace headrace {

/// The source positions that outputs [first, first + count) of a resize in -> out read. `filter`: of floats.
Span float_span(int in, int out, Filter filter, int first, int count);

/// A table for the inner loops, which must not instantiate inline functions with their instruction set.
struct FloatTableView {
  int count = 0;
  int taps_stride = 0;
  bool fused = false;
  const int32_t* start = nullptr;
  const int32_t* taps = nullptr;
  const float* weight = nullptr;
};

/// For each of `out` positions in [first, first + count): window start, taps (at least 1), and weights, `taps_stride`
/// apart.
struct FloatTable {
  int count = 0;
  int taps_stride = 0;
  bool fused = false;
  AlignedArray<int32_t> start, taps;
  AlignedArray<float> weight;

  /// Table of the resize in -> out for outputs [first, first + count). Reuses its memory. Starts are relative to source
  /// position `origin`.
  void build(int in, int out, Filter filter, int first, int count, int origin = 0);
  /// The source positions that the table reads, relative to `origin`.
  Span span() const { return {start[0], start[count - 1] + taps[count - 1]}; }
  FloatTableView view() const { return {count, taps_stride, fused, start.data(), taps.data(), weight.data()}; }
};

}  // namespace headrace
