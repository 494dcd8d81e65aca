// The loops from DCT coefficients to RGBX pixels, one set per instruction set. All give the bytes of libjpeg-turbo on
// x86: its accurate inverse DCT (islow), its fancy upsampling, and its colour conversion.
//
// Note [wide loops]: the loops read and write whole vectors. Rows of samples have kSampleSlack readable bytes on both
// sides and the same number of writable ones after their end; rows of pixels are written up to the next multiple of
// kPixelGroup.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

inline constexpr int kBlockEdge = 8;  // samples
inline constexpr int kBlockValues = 64;
inline constexpr int kBlockGroup = 4;  // blocks that are inverted at once, at most
inline constexpr int kSampleSlack = 128;
inline constexpr int kPixelGroup = 64;

struct BlockLoops {
  const char* name;
  /// Inverts `count` adjacent quantised blocks: 64 coefficients each, in natural order, the first aligned to 64 bytes.
  /// `quant`: 64 factors in natural order, aligned to 64 bytes. Writes 8 rows of 8 * count samples, `stride` bytes
  /// apart. Reads blocks up to the next multiple of kBlockGroup, and writes their samples too.
  void (*invert)(const int16_t* blocks, int count, const uint16_t* quant, uint8_t* samples, size_t stride);
  /// Fancy upsampling of `count` samples to 2 * count, by the samples next to each (jdsample.c's h2v1).
  void (*upsample_h2v1)(const uint8_t* row, int count, uint8_t* to);
  /// The same for the row of samples between `near` and `far`, three quarters near (h2v2).
  void (*upsample_h2v2)(const uint8_t* near, const uint8_t* far, int count, uint8_t* to);
  /// `count` samples between two rows (h1v2). `rounding`: 1 above `near`, 2 below it.
  void (*upsample_h1v2)(const uint8_t* near, const uint8_t* far, int rounding, int count, uint8_t* to);
  /// `count` pixels, whose X is 255.
  void (*colour)(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int count, uint8_t* pixels);
  void (*gray)(const uint8_t* y, int count, uint8_t* pixels);
};

/// For reference, and where libjpeg-turbo has no vector code; where it has, it is faster than this.
extern const BlockLoops kScalarBlocks;
#if defined(__x86_64__) || defined(_M_X64)
extern const BlockLoops kAvx2Blocks;
extern const BlockLoops kAvx512Blocks;
#endif
extern const BlockLoops kNeonBlocks;

/// The scalar `invert`, for the groups that the vector code does not handle.
void invert_scalar(const int16_t* blocks, int count, const uint16_t* quant, uint8_t* samples, size_t stride);

}  // namespace headrace
