// Pixels of PNG rows in vectors of the compiler, for all instruction sets.
#pragma once

#include <bit>
#include <cstdint>

namespace headrace {

using EightBytes = uint8_t __attribute__((vector_size(8)));
using EightWords = int16_t __attribute__((vector_size(16)));

inline EightWords wide(EightBytes bytes) { return __builtin_convertvector(bytes, EightWords); }
inline EightWords wide(uint64_t bytes) { return wide(std::bit_cast<EightBytes>(bytes)); }
inline uint64_t narrow(EightWords values) {
  return std::bit_cast<uint64_t>(__builtin_convertvector(values, EightBytes));
}

inline EightWords magnitude(EightWords values) { return values > -values ? values : -values; }

/// The one of left, above and corner that is nearest to left + above - corner; the first of equals. Section 9.4 of the
/// PNG specification.
inline EightWords predict(EightWords left, EightWords above, EightWords corner) {
  const EightWords to_left = above - corner, to_above = left - corner;
  const EightWords left_off = magnitude(to_left), above_off = magnitude(to_above),
                   corner_off = magnitude(to_left + to_above);
  const EightWords straight = left_off <= above_off ? left : above;
  const EightWords least = left_off <= above_off ? left_off : above_off;
  return least <= corner_off ? straight : corner;
}

}  // namespace headrace
