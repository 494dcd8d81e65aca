// MixUp and CutMix of a batch of bytes into a batch of normalised float32: each element is written to memory once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/byte_mixing/byte_loops.h"
#include "core/kernels/normalisation.h"

namespace headrace {

/// The table of three channels, and the arithmetic that gives its entries, to the bit.
struct ByteTable {
  const float* entries = nullptr;  // [3][256]
  Normalisation by;
};

/// Planes of bytes (samples, 3, height, width) without gaps, and as many float32 that do not overlap with them.
struct ByteBatch {
  const uint8_t* bytes = nullptr;
  float* to = nullptr;
  size_t samples = 0, height = 0, width = 0;
};

/// Part of each image: rows top to bottom - 1, columns left to right - 1.
struct ByteBox {
  size_t left = 0, top = 0, right = 0, bottom = 0;
};

/// Writes each sample's elements times `share`, plus those of the sample before it times `rest`; the products and the
/// sum are rounded. The sample before the first one is the last one.
void mix_bytes(const ByteBatch& batch, const ByteTable& table, float share, float rest, const ByteLoops& loops);
/// Writes each sample's elements, but those of the sample before it within the box, which lies in the image.
void cut_bytes(const ByteBatch& batch, const ByteTable& table, const ByteBox& box, const ByteLoops& loops);

}  // namespace headrace
