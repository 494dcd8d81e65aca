// The loops of OpenCV's bilinear resize in plain C++.
#include "core/base/geometry.h"
#include "core/kernels/opencv_resize/opencv_loops.h"

namespace headrace {
namespace {

void along_x(const uint8_t* row, const OpencvColumns& columns, int16_t* dst) {
  for (int x = 0; x < columns.count; ++x) {
    const uint8_t* pixel = row + static_cast<int64_t>(columns.start[x]) * kPixelBytes;
    const int first = columns.weight[2 * x], second = columns.weight[2 * x + 1];
    for (int c = 0; c < kPixelBytes; ++c) {
      *dst++ = static_cast<int16_t>((pixel[c] * first + pixel[c + kPixelBytes] * second) >> 4);
    }
  }
}

void along_y(const int16_t* upper, const int16_t* lower, int16_t upper_weight, int16_t lower_weight, int count,
             uint8_t* dst) {
  for (int i = 0; i < count; ++i) {
    const int sum = ((upper[i] * upper_weight) >> 16) + ((lower[i] * lower_weight) >> 16);
    dst[i] = static_cast<uint8_t>((sum + 2) >> 2);
  }
}

}  // namespace

const OpencvLoops kScalarOpencv{along_x, along_y};

}  // namespace headrace
