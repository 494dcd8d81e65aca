// The positions and weights of OpenCV's bilinear resize along one axis, to the bit.
#pragma once

#include <cstdint>

#include "core/base/geometry.h"

namespace headrace {

/// One axis of a resize in -> out.
class OpencvAxis {
 public:
  OpencvAxis() = default;
  OpencvAxis(int in, int out);

  /// The two source pixels of an output, and their weights. The second is the first one if its weight is 0, or at a
  /// border.
  struct Taps {
    int first, second;
    int16_t first_weight, second_weight;
  };
  /// Along y a position outside the image keeps its weights, and both of its rows are the one at the border.
  Taps row(int index) const;
  /// Along x the pixel at the border has the whole weight there.
  Taps column(int index) const;
  /// The source positions that outputs [first, first + count) read, along either axis.
  Span span(int first, int count) const { return {row(first).first, row(first + count - 1).second + 1}; }

 private:
  Taps taps(int at, float share) const;
  float position(int index) const { return static_cast<float>((index + 0.5) * scale_ - 0.5); }

  int in_ = 1;
  double scale_ = 1;
};

}  // namespace headrace
