// MixUp and CutMix of a finished batch, in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/mixup/mix_loops.h"

namespace headrace {

/// A batch in memory: each sample's elements have no gaps and begin `stride` bytes after those of the previous sample.
struct MixBatch {
  uint8_t* data = nullptr;
  size_t samples = 0;
  size_t stride = 0;
  size_t elements = 0;  // of a sample
  MixType type = MixType::kFloat32;
};

/// Mixes each sample with the one before it; the first one with the last. Each element is read and written once.
void mix_rolled(const MixBatch& batch, const MixShares& shares, const MixLoops& loops);
/// Mixes each sample with the one at its position from the end.
void mix_mirrored(const MixBatch& batch, const MixShares& shares, const MixLoops& loops);

/// A box of each sample: rows of `bytes` bytes, in planes. Strides are in bytes; no two rows overlap.
struct MixBoxes {
  uint8_t* data = nullptr;  // the first row of the first sample
  size_t samples = 0, planes = 0, rows = 0, bytes = 0;
  ptrdiff_t sample_stride = 0, plane_stride = 0, row_stride = 0;
};

/// Moves each sample's box to the next sample; the last one's to the first.
void roll_boxes(const MixBoxes& boxes);
/// Exchanges each sample's box with that of the sample at its position from the end.
void mirror_boxes(const MixBoxes& boxes);

}  // namespace headrace
