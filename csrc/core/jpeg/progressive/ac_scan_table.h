// Look-up table for the Huffman codes of a progressive scan of AC coefficients.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/jpeg/huffman/huffman_table.h"

namespace headrace {

/// What a code stands for.
struct AcScanSymbol {
  unsigned entry;
  unsigned total() const { return entry & 255; }             // bits of the code and of what follows it
  unsigned code_length() const { return entry >> 8 & 255; }  // 0: a long code, see AcScanTable::find
  /// Bits after the code: of the value, 0 or its size; or of the number of blocks, if this ends a block.
  unsigned size() const { return entry >> 16 & 255; }
  unsigned advance() const { return entry >> 24; }  // run of zeros + 1, or kEnd or kWrong
  static constexpr unsigned kEnd = 128;             // the band of this block, and perhaps of more blocks, is over
  static constexpr unsigned kWrong = 255;           // invalid: no encoder writes it
};

class AcScanTable {
 public:
  /// `most_bits`: a value with more bits means damage.
  void build(const HuffmanSpec& from, unsigned most_bits);
  /// The symbol whose code begins with these kLookupBits.
  AcScanSymbol at(uint64_t lookup) const { return {entry_[lookup]}; }
  /// The symbol of a long code at the beginning of `bits` (left-aligned).
  AcScanSymbol find(uint64_t bits) const;

 private:
  AcScanSymbol symbol(unsigned length, unsigned symbol) const;

  HuffmanSpec spec_;
  unsigned most_bits_ = 0;
  bool built_ = false;
  std::array<uint32_t, 1 << kLookupBits> entry_{};
  LongCodes long_codes_;
};

}  // namespace headrace
