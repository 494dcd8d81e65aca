// The inner loops of a resize in float32, one set per instruction set. All sets give the same floats.
//
// Note [sums of four]
// torch's kernel adds a window's products one after another. Its compiler multiplies four at a time, and these products
// are rounded before they are added; the last, at most three, are fused with the sum. Where the instruction set has no
// fused multiplication, every product is rounded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/float_resize/float_table.h"

namespace headrace {

/// Rows that the horizontal pass makes at once. Windows of 4 and of 5 taps alternate, so processors mispredict the end
/// of their loops: 8 rows share the cost. Zen 4, 300 x 280 to 224 x 224 with AVX-512: 4 rows 289 us, 8 and 16 106 us.
inline constexpr int kFloatRows = 8;
/// Floats of its scratch memory for each pixel of a row: those of all rows, and their bytes.
inline constexpr int kFloatScratch = (kPixelBytes + 1) * kFloatRows;

struct FloatLoops {
  /// Horizontal pass: `rows` rows of RGBX at `src`, at most kFloatRows -> table.count pixels of four floats per row at
  /// `dst`, `dst_stride` floats apart. `scratch`: kFloatScratch floats for each pixel of table.span(), aligned to 64
  /// bytes.
  void (*along_x)(const uint8_t* src, size_t src_stride, int rows, const FloatTableView& table, float* dst,
                  size_t dst_stride, float* scratch);
  /// The sums of the horizontal pass alone: `pixels` are those of kFloatRows rows side by side, from position
  /// table.start[0] on, of which `rows` are made.
  void (*sum_x)(const FloatTableView& table, const float* pixels, int rows, float* dst, size_t dst_stride);
  /// Bytes as floats.
  void (*widen)(const uint8_t* src, int count, float* dst);
  /// Vertical pass: output row `index` of the table from rows of `count` floats, `src_stride` floats apart, at `src`
  /// (its row 0 = table.start[index]).
  void (*along_y)(const float* src, size_t src_stride, const FloatTableView& table, int index, int count, float* dst);
  /// Floats as bytes: clamped, and rounded, halves to the even one.
  void (*narrow)(const float* src, int count, uint8_t* dst);
};

extern const FloatLoops kScalarFloats;
#if defined(__x86_64__) || defined(_M_X64)
extern const FloatLoops kAvx2Floats;
extern const FloatLoops kAvx512Floats;
#endif
extern const FloatLoops kNeonFloats;

}  // namespace headrace
