// Look-up tables for Huffman codes of JPEG: from the next bits to one or two decoded symbols.
#include "huffman_table.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr unsigned kEntries = 1u << kLookupBits;

/// One symbol of AC, as the look-up for it alone would say.
struct Single {
  uint8_t length = 0;   // of the code; 0: none of up to kLookupBits
  uint8_t size = 0;     // bits of the value after it
  uint8_t total = 0;    // both
  uint8_t advance = 0;  // see kEndOfBlock
  int16_t value = 0;    // only if the look-up holds all of it
};

/// Calls fill(first entry, number of entries, code length, symbol) for every code of up to kLookupBits.
template <typename Fill>
void for_each_short_code(const HuffmanSpec& spec, Fill fill) {
  unsigned at = 0;
  size_t symbol = 0;
  for (unsigned length = 1; length <= kLookupBits; ++length) {
    const unsigned span = 1u << (kLookupBits - length);
    for (unsigned i = 0; i < spec.lengths[length]; ++i, at += span) {
      if (at + span > kEntries || symbol >= spec.symbols.size()) return;  // more codes than there can be
      fill(at, span, length, spec.symbols[symbol++]);
    }
  }
}

/// The value of `size` bits: the upper half of the numbers stands for itself, the lower half for negative ones.
int extend(unsigned bits, unsigned size) {
  if (size == 0) return 0;
  const int value = static_cast<int>(bits);
  return value >= 1 << (size - 1) ? value : value - (1 << size) + 1;
}

using Singles = std::array<Single, kEntries>;

void fill_singles(const HuffmanSpec& spec, Singles* singles) {
  singles->fill(Single{});
  for_each_short_code(spec, [&](unsigned at, unsigned span, unsigned length, unsigned symbol) {
    Single single;
    const unsigned run = symbol >> 4;
    single.length = static_cast<uint8_t>(length);
    single.size = static_cast<uint8_t>(symbol & 15);
    single.total = static_cast<uint8_t>(length + single.size);
    single.advance = static_cast<uint8_t>(single.size == 0 && run != 15 ? kEndOfBlock : run + 1);
    for (unsigned i = at; i < at + span; ++i) {
      if (single.total <= kLookupBits) {
        const unsigned bits = i >> (kLookupBits - single.total) & ((1u << single.size) - 1);
        single.value = static_cast<int16_t>(extend(bits, single.size));
      }
      (*singles)[i] = single;
    }
  });
}

uint64_t pair_entry(const Singles& singles, unsigned index) {
  const Single& first = singles[index];
  uint64_t total = first.total, advance = first.advance, value = 0;
  const uint64_t of_first = uint64_t{first.length} << 8 | uint64_t{63u - first.size} << 16 | advance << 24;
  if (first.length == 0 || total > kMaxEntryBits) return of_first | uint64_t{kSingle} << 32;
  if (advance != kEndOfBlock && total < kLookupBits) {
    const Single& second = singles[index << total & (kEntries - 1)];
    if (second.length != 0 && total + second.total <= kLookupBits) {
      total += second.total;
      advance += second.advance;
      value = static_cast<uint16_t>(second.value);
    }
  }
  return total | of_first | advance << 32 | value << 48;
}

uint16_t skip_entry(const Singles& singles, unsigned index) {
  unsigned total = 0, advance = 0;
  while (total < kLookupBits && advance < kSkipSingle) {
    const Single& next = singles[index << total & (kEntries - 1)];
    // Its code must lie in the look-up; its value need not.
    if (next.length == 0 || total + next.length > kLookupBits || total + next.total > kMaxEntryBits) break;
    const unsigned further = next.advance == kEndOfBlock ? kSkipEnd : next.advance;
    if (advance + next.advance > 63 && further != kSkipEnd) break;  // no block is that long
    total += next.total;
    advance += further;
  }
  if (total == 0) advance = kSkipSingle;
  return static_cast<uint16_t>(total | advance << 6);
}

}  // namespace

void LongCodes::build(const HuffmanSpec& spec) {
  symbols_ = spec.symbols;
  uint32_t code = 0;
  int index = 0;
  for (unsigned length = 1; length <= 16; ++length) {
    offset_[length] = index - static_cast<int>(code);
    code += spec.lengths[length];
    index += spec.lengths[length];
    end_[length] = code << (16 - length);
    code <<= 1;
  }
}

int LongCodes::find(uint64_t bits, int* length) const {
  const uint32_t prefix = static_cast<uint32_t>(bits >> 48);
  for (unsigned n = kLookupBits + 1; n <= 16; ++n) {
    if (prefix >= end_[n]) continue;
    *length = static_cast<int>(n);
    const int index = offset_[n] + static_cast<int>(bits >> (64 - n));
    return symbols_[static_cast<size_t>(index) & 255];
  }
  return -1;
}

void DcTable::build(const HuffmanSpec& from) {
  spec = from;
  long_codes.build(from);
  entry.fill(0);
  for_each_short_code(from, [&](unsigned at, unsigned span, unsigned length, unsigned symbol) {
    std::fill_n(entry.begin() + at, span, (length + symbol) | length << 8 | symbol << 16);
  });
}

void AcTable::build(const HuffmanSpec& from) {
  spec = from;
  long_codes.build(from);
  Singles singles;
  fill_singles(from, &singles);
  for (unsigned i = 0; i < kEntries; ++i) {
    pair[i] = pair_entry(singles, i);
    skip[i] = skip_entry(singles, i);
  }
}

}  // namespace headrace
