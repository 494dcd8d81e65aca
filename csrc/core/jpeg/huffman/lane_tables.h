// Huffman tables for vectors: a lane of 32 bits looks its next symbol up by byte permutes, in registers.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/aligned_array.h"
#include "core/jpeg/huffman/huffman_table.h"

namespace headrace {

/// Tables of two kinds of blocks, those of kind 1 in the second half of each array. Long codes begin with many ones: so
/// the slot of a symbol is the number of ones that the code begins with, and the three bits after the first zero. That
/// is the exponent of the inverted bits as a float, and the beginning of its mantissa. A code that has more bits, or
/// takes more than kMostBits with its value, has no slot: `bits` is 0 there.
struct alignas(kCacheLine) LaneTables {
  static constexpr unsigned kKinds = 2, kSlots = 64, kShift = 20;  // a float >> kShift: the slot, in its last 6 bits
  static constexpr unsigned kNoSlot = 56;                          // never has a symbol
  static constexpr unsigned kMostBits = 25;                        // of a code with its value

  using Bytes = std::array<uint8_t, kKinds * kSlots>;
  struct Ac {
    Bytes bits, advance, size;  // of the code with its value; see AcSymbol::advance; of the value
  };
  struct Dc {
    Bytes bits, size;
  };
  // [0]: codes that begin with up to 7 ones, [1]: with 8 to 15.
  alignas(kCacheLine) std::array<Ac, 2> ac;
  alignas(kCacheLine) std::array<Dc, 2> dc;
  std::array<LongCodes, kKinds> ac_codes, dc_codes;  // all codes

  /// False: a table has more codes than can exist.
  bool build(unsigned kind, const HuffmanSpec& dc_spec, const HuffmanSpec& ac_spec);

 private:
  struct Built {
    bool fine = false;
    HuffmanSpec dc, ac;
  };
  std::array<Built, kKinds> built_;
};

}  // namespace headrace
