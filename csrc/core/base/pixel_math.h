// The arithmetic of single pixels: shared by the plain CPU loops and by the CUDA kernel, which must agree to the bit.
#pragma once

#include <cstdint>

#include "core/base/geometry.h"

// Marks functions that nvcc also compiles for the GPU. Those of this file are static: each file that is compiled for
// wider instructions has its own copies, so the linker cannot pick one of them for the whole program.
#if defined(__CUDACC__)
#define HEADRACE_HD __host__ __device__
#else
#define HEADRACE_HD
#endif

namespace headrace {

/// Fraction bits of a weight: 32 - 8 (result) - 2 (spare: weights can be negative, sums exceed 1). Pillow, Resample.c.
inline constexpr int kWeightBits = 22;
/// Initial value of a sum of weighted bytes: the shift by kWeightBits then rounds to nearest.
inline constexpr int32_t kWeightHalf = 1 << (kWeightBits - 1);

HEADRACE_HD static inline int clamp_to_byte(int value) { return value < 0 ? 0 : value > 255 ? 255 : value; }

/// The byte of a sum of weighted bytes that began with kWeightHalf.
HEADRACE_HD static inline uint8_t byte_of_sum(int32_t sum) {
  return static_cast<uint8_t>(clamp_to_byte(sum >> kWeightBits));
}

// Note [Pillow's sums]
// GCC and Clang fuse a product with the sum that it is part of wherever the processor can: always on 64-bit Arm, never
// in a build for any x86-64 processor. So Pillow's wheels for Arm round once where those for x86 round twice.
// pillow_sum() stands for such a sum in Pillow's C; elsewhere a build of headrace fuses nothing (-ffp-contract=off),
// since Python, numpy and torch's separate operations round each result.
#if defined(__aarch64__)
inline constexpr bool kPillowFuses = true;
#else
inline constexpr bool kPillowFuses = false;
#endif

/// a + b * c, as Pillow's compiled code rounds it.
HEADRACE_HD static inline float pillow_sum(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return kPillowFuses ? __fmaf_rn(b, c, a) : __fadd_rn(a, __fmul_rn(b, c));
#else
  return kPillowFuses ? __builtin_fmaf(b, c, a) : a + b * c;
#endif
}
HEADRACE_HD static inline double pillow_sum(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return kPillowFuses ? __fma_rn(b, c, a) : __dadd_rn(a, __dmul_rn(b, c));
#else
  return kPillowFuses ? __builtin_fma(b, c, a) : a + b * c;
#endif
}

/// ITU-R 601 luma in 16-bit fixed point, as in Pillow's Convert.c.
HEADRACE_HD static inline uint8_t luma(int r, int g, int b) {
  return static_cast<uint8_t>((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16);
}

/// R, G, B and 0 as the bytes of a little-endian word.
HEADRACE_HD static inline uint32_t pack_rgbx(int r, int g, int b) {
  return static_cast<uint32_t>(r) | static_cast<uint32_t>(g) << 8 | static_cast<uint32_t>(b) << 16;
}

/// The source of position `at` on a padded axis of `size` pixels, as in numpy.pad and torchvision; -1: the fill value.
HEADRACE_HD static inline int padded_source(int at, int size, PadMode mode) {
  if (at >= 0 && at < size) return at;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge || size == 1) return at < 0 ? 0 : size - 1;
  // reflect does not repeat the edge pixel, symmetric does; both are periodic
  const int period = mode == PadMode::kReflect ? 2 * size - 2 : 2 * size;
  const int phase = ((at % period) + period) % period;
  return phase < size ? phase : (mode == PadMode::kReflect ? period - phase : period - 1 - phase);
}

}  // namespace headrace
