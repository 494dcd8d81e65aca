// The inner loops of OpenCV's bilinear resize of bytes, one set per instruction set. All sets give the same bytes.
//
// Note [weights of eleven bits]
// OpenCV multiplies the two pixels of a row by whole weights that sum up to 2048 and drops the last four bits of the
// sum, which then fits 15 bits. It multiplies the sums of two rows by such weights, drops the last 16 bits of each
// product, adds the two and 2, and drops two bits more. A bilinear resize never reads more than two pixels of an axis.
#pragma once

#include <cstdint>

namespace headrace {

/// Along x: for each output pixel the first of its two source pixels, and their weights.
struct OpencvColumns {
  int count = 0;
  const int32_t* start = nullptr;
  const int16_t* weight = nullptr;  // two for each output pixel
};

struct OpencvLoops {
  /// Horizontal pass of a row of RGBX -> four sums for each of columns.count pixels at `dst`. It may read one pixel
  /// after the row, whose weight is then 0, and write up to the next multiple of 16 sums.
  void (*along_x)(const uint8_t* row, const OpencvColumns& columns, int16_t* dst);
  /// Vertical pass of two rows of `count` sums -> bytes. It may read and write up to the next multiple of 32.
  void (*along_y)(const int16_t* upper, const int16_t* lower, int16_t upper_weight, int16_t lower_weight, int count,
                  uint8_t* dst);
};

extern const OpencvLoops kScalarOpencv;
#if defined(__x86_64__) || defined(_M_X64)
extern const OpencvLoops kAvx2Opencv;
#endif

}  // namespace headrace
