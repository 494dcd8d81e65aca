// Look-up table for the Huffman codes of a progressive scan of AC coefficients.
#include "core/jpeg/progressive/ac_scan_table.h"

#include <algorithm>

namespace headrace {

AcScanSymbol AcScanTable::symbol(unsigned length, unsigned symbol) const {
  const unsigned size = symbol & 15, run = symbol >> 4;
  const bool end = size == 0 && run != 15;
  const unsigned bits = end ? run : size;
  const unsigned advance = end ? AcScanSymbol::kEnd : size > most_bits_ ? AcScanSymbol::kWrong : run + 1;
  return {(length + bits) | length << 8 | bits << 16 | advance << 24};
}

void AcScanTable::build(const HuffmanSpec& from, unsigned most_bits) {
  if (built_ && most_bits_ == most_bits && spec_ == from) return;
  spec_ = from;
  most_bits_ = most_bits;
  built_ = true;
  long_codes_.build(from);
  size_t at = 0, next = 0;
  for (unsigned length = 1; length <= kLookupBits; ++length) {
    const size_t span = size_t{1} << (kLookupBits - length);
    for (unsigned i = 0; i < from.lengths[length] && next < from.symbols.size(); ++i, at += span) {
      if (at + span > entry_.size()) break;  // more codes than can exist
      std::fill_n(entry_.begin() + static_cast<ptrdiff_t>(at), span, symbol(length, from.symbols[next++]).entry);
    }
  }
  std::fill(entry_.begin() + static_cast<ptrdiff_t>(std::min(at, entry_.size())), entry_.end(), 0);
}

AcScanSymbol AcScanTable::find(uint64_t bits) const {
  int length = 0;
  const int found = long_codes_.find(bits, &length);
  if (found < 0) return {AcScanSymbol::kWrong << 24};
  return symbol(static_cast<unsigned>(length), static_cast<unsigned>(found));
}

}  // namespace headrace
