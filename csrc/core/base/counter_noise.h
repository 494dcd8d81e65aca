// Counter-based 16-bit random numbers: shared by the CPU's loop and by the CUDA kernel.
#pragma once

#include <cstdint>

#include "core/base/pixel_math.h"

namespace headrace {

/// Number of values that a drawn element may have: rows of the recipe's values.
inline constexpr int kNoiseLevels = 1 << 16;

/// The four 16-bit numbers with counters 4 n to 4 n + 3, the first in the lowest bits: number n + 1 of SplitMix64
/// (Steele, Lea, Flood 2014) with initial state `state`.
HEADRACE_HD static inline uint64_t noise_word(uint64_t state, uint64_t n) {
  uint64_t z = state + (n + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

/// The 16-bit number with counter k.
HEADRACE_HD static inline int noise16(uint64_t state, int64_t k) {
  return static_cast<int>(noise_word(state, static_cast<uint64_t>(k) >> 2) >> 16 * (k & 3) & 0xFFFF);
}

}  // namespace headrace
