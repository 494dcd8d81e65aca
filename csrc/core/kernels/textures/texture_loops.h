// The loops that make texture channels, one set per instruction set, compiled from the same source. All give the same
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/textures/texture.h"

namespace headrace {

/// Memory of one thread for one size. Lengths are those of texture_scratch.cpp; doubles are aligned to cache lines.
struct TextureScratchView {
  uint8_t* pixels = nullptr;    // the image, RGBX, rows without gaps; kRowSlack readable after it
  double* luma = nullptr;       // [height][luma_stride], 0 after the last column
  double* spectra = nullptr;    // [2: real, imaginary][width][texture_padded(height / 2 + 1)]
  double* combined = nullptr;   // [2: real, imaginary][height][texture_padded(width)]
  double* lanes = nullptr;      // [4][2: real, imaginary][longer edge][kTextureLanes]: transforms in progress
  double* butterfly = nullptr;  // [4][longer edge][kTextureLanes]: the values of one large radix
  double* rows = nullptr;       // [4][texture_padded(width + 2)]: for Sobel's kernels
  float* channels = nullptr;    // [8][texture_padded(width)]: one row of LAB, Sobel and RGB
  float* bands = nullptr;       // [2][height][texture_padded(width)]
  int luma_stride = 0;
};

/// Makes all channels of scratch.pixels.
using MakeTexture = void (*)(const TextureView& texture, const TextureScratchView& scratch,
                             const TextureTarget& target);

void make_texture_scalar(const TextureView& texture, const TextureScratchView& scratch, const TextureTarget& target);
#if defined(__x86_64__) || defined(_M_X64)
void make_texture_avx2(const TextureView& texture, const TextureScratchView& scratch, const TextureTarget& target);
void make_texture_avx512(const TextureView& texture, const TextureScratchView& scratch, const TextureTarget& target);
#endif

}  // namespace headrace
