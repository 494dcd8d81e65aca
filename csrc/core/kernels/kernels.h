// The inner loops, one set an instruction set, picked at load: all sets give the same bytes as the scalar one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/effects/effects.h"
#include "core/kernels/resample_table.h"

namespace headrace {

struct Normalisation;

/// How a byte becomes an output element: 256 entries a channel, made by running the torch operations themselves.
struct Lut {
  int element_bytes = 4;          // 1, 2 or 4
  int channels = 3;               // 1 or 3
  const void* entries = nullptr;  // [channels][256] elements, 64-byte aligned
  // The entries again by bytes, [channels][element_bytes][256], 64-byte aligned: byte shuffles look a whole register up
  // at once. Made by split_lut; Fuser does it for its callers.
  const uint8_t* planes = nullptr;
  // What computes the entries, to the bit; null: nothing that is known (normalisation.h). RowStore looks for it.
  const Normalisation* normalisation = nullptr;
};

inline constexpr int kMaxLutBytes = 3 * 4 * 256;

/// Fills `planes` (kMaxLutBytes) from lut.entries.
void split_lut(const Lut& lut, uint8_t* planes);

/// Where a row of the output goes. Element (channel c, column x) lies at base + c * channel_stride + x * pixel_stride
/// (bytes).
struct RowTarget {
  uint8_t* base = nullptr;
  ptrdiff_t channel_stride = 0;
  ptrdiff_t pixel_stride = 0;  // element_bytes (planar) or channels * element_bytes (channels_last)
};

/// Between the two passes and the store a row is RGBX or, quicker for wide registers, three planes R, G, B.
/// `plane_stride` tells: 0 is RGBX, else the bytes from plane to plane, a multiple of kTableBlock that holds the row.
struct Kernels {
  const char* name;
  /// Whether rows on their way to the store had better be planes.
  bool planar;
  /// Horizontal pass: `rows` rows of RGBX at `src` -> table.count pixels a row at `dst`, as plane_stride says. Planes
  /// are written up to the next multiple of kTableBlock.
  void (*resample_x)(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                     size_t dst_stride, int plane_stride);
  /// Vertical pass: output row `index` of the table from source rows at `src` (its row 0 = table.start[index]), `bytes`
  /// wide, whatever the layout.
  void (*resample_y)(const uint8_t* src, size_t src_stride, const TableView& table, int index, int bytes, uint8_t* dst);
  /// One row through the table into the output, mirrored if asked. One channel reads R.
  void (*store)(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut, const RowTarget& target);
  /// Of the same instruction set.
  const EffectLoops* effects;
};

/// The best set this processor runs, or the one named by HEADRACE_ISA=scalar|avx2|avx512 (throws std::runtime_error
/// when it cannot).
const Kernels& kernels();
/// nullptr where the processor (or the build) lacks it. Names: scalar, avx2, avx512.
const Kernels* kernels_named(const char* name);

}  // namespace headrace
