// The inner loops, one set per instruction set, chosen at first use. All sets give the same bytes as the scalar one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/jpeg/idct/block_loops.h"
#include "core/kernels/effects/effect_loops.h"
#include "core/kernels/float_resize/float_loops.h"
#include "core/kernels/mixup/mix_loops.h"
#include "core/kernels/opencv_resize/opencv_loops.h"
#include "core/kernels/resize/resample_table.h"
#include "core/kernels/textures/texture_loops.h"
#include "core/kernels/warp/tensor_warp.h"
#include "core/kernels/warp/warp_loops.h"

namespace headrace {

struct Normalisation;

/// Maps bytes to output elements: 256 entries per channel, computed by the torch operations themselves.
struct Lut {
  int element_bytes = 4;          // 1, 2 or 4
  int channels = 3;               // 1 or 3
  const void* entries = nullptr;  // [channels][256] elements, 64-byte aligned
  // The entries split into bytes, [channels][element_bytes][256], 64-byte aligned: a byte shuffle looks up a whole
  // register at once. Made by split_lut; Fuser does it for its callers.
  const uint8_t* planes = nullptr;
  // The arithmetic that gives the entries, to the bit; null: none is known (normalisation.h). RowStore sets it.
  const Normalisation* normalisation = nullptr;
};

inline constexpr int kMaxLutBytes = 3 * 4 * 256;

/// Fills `planes` (kMaxLutBytes) from lut.entries.
void split_lut(const Lut& lut, uint8_t* planes);

/// Where a row of the output goes. Element (channel c, column x) is at base + c * channel_stride + x * pixel_stride
/// (bytes).
struct RowTarget {
  uint8_t* base = nullptr;
  ptrdiff_t channel_stride = 0;
  ptrdiff_t pixel_stride = 0;  // element_bytes (planar) or channels * element_bytes (channels_last)
};

/// Between the two passes and the store a row is RGBX or, faster with wide registers, three planes R, G, B.
/// `plane_stride`: 0 for RGBX, else the bytes between planes, a multiple of kTableBlock and at least the row's width.
struct Kernels {
  const char* name;
  /// Whether planes are faster than RGBX for rows that go to the store.
  bool planar;
  /// Converts adjacent pixels of three bytes to RGBX, X = 0. Reads and writes no other bytes.
  void (*rgb_to_rgbx)(const uint8_t* rgb, int pixels, uint8_t* rgbx);
  /// Horizontal pass: `rows` rows of RGBX at `src` -> table.count pixels per row at `dst`, in the format of
  /// `plane_stride`. Planes are written up to the next multiple of kTableBlock.
  void (*resample_x)(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                     size_t dst_stride, int plane_stride);
  /// Vertical pass: output row `index` of the table from source rows at `src` (its row 0 = table.start[index]), `bytes`
  /// wide, in any format.
  void (*resample_y)(const uint8_t* src, size_t src_stride, const TableView& table, int index, int bytes, uint8_t* dst);
  /// Stores one row through the table into the output, mirrored if `mirror`. With one channel it reads R.
  void (*store)(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut, const RowTarget& target);
  /// Of the same instruction set.
  const EffectLoops* effects;
  MakeTexture make_texture;
  RunWarp run_warp;
  RunTensorWarp run_tensor_warp;
  const MixLoops* mixing;
  const FloatLoops* floats;
  const OpencvLoops* opencv;
  /// nullptr: libjpeg-turbo is faster.
  const BlockLoops* blocks;
};

/// The fastest set that this processor supports, or the one that HEADRACE_ISA=scalar|avx2|avx512|neon names. Throws
/// std::runtime_error if the named set is not supported. Any thread.
const Kernels& kernels();
/// The set named scalar, avx2, avx512 or neon; nullptr if the processor or the build lacks it.
const Kernels* kernels_named(const char* name);

}  // namespace headrace
