// Look-up tables for Huffman codes of JPEG: from the next bits to one or two decoded symbols.
#include "core/jpeg/huffman_table.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr unsigned kEntries = 1u << kLookupBits;

/// Calls fill(first entry, number of entries, code length, symbol) for every code of up to kLookupBits.
template <typename Fill>
void for_each_short_code(const HuffmanSpec& spec, Fill fill) {
  unsigned at = 0;
  size_t symbol = 0;
  for (unsigned length = 1; length <= kLookupBits; ++length) {
    const unsigned span = 1u << (kLookupBits - length);
    for (unsigned i = 0; i < spec.lengths[length]; ++i, at += span) {
      if (at + span > kEntries || symbol >= spec.symbols.size()) return;  // more codes than can exist
      fill(at, span, length, spec.symbols[symbol++]);
    }
  }
}

/// The signed value of `size` bits: numbers with the first bit set are positive, all others negative.
int extend(unsigned bits, unsigned size) {
  if (size == 0) return 0;
  const int value = static_cast<int>(bits);
  return value >= 1 << (size - 1) ? value : value - (1 << size) + 1;
}

/// An AC symbol with a short code.
struct Symbol {
  uint8_t length = 0;   // of the code; 0: not a short code
  uint8_t size = 0;     // bits of the value after it
  uint8_t total = 0;    // length + size
  uint8_t advance = 0;  // see kEndOfBlock
};

Symbol ac_symbol(unsigned length, unsigned symbol) {
  const unsigned size = symbol & 15, run = symbol >> 4;
  const unsigned advance = size == 0 && run != 15 ? kEndOfBlock : run + 1;
  return {static_cast<uint8_t>(length), static_cast<uint8_t>(size), static_cast<uint8_t>(length + size),
          static_cast<uint8_t>(advance)};
}

/// What the symbols after the first add to an entry, at [1 << left | bits], if `left` bits of the look-up remain and
/// have the value `bits`. The fields of an entry are sums, so one addition completes it. Optimised files have tables of
/// their own (157 of 160 ImageNet files), so building these must cost less than they save.
template <typename Entry>
using Addends = std::array<Entry, kEntries>;

/// For AcTable::pair: one symbol, if its code and its value lie in the remaining bits.
void fill_pair_addends(const std::array<Symbol, kEntries>& symbols, Addends<uint64_t>* addends) {
  (*addends)[1] = 0;  // no bits left
  for (unsigned left = 1; left < kLookupBits; ++left)
    for (unsigned bits = 0; bits < 1u << left; ++bits) {
      const Symbol& second = symbols[bits << (kLookupBits - left)];
      const bool fits = second.length != 0 && second.total <= left;
      const unsigned value_bits = bits >> (fits ? left - second.total : 0) & ((1u << second.size) - 1);
      const uint64_t value = static_cast<uint16_t>(extend(value_bits, second.size));
      const uint64_t addend = second.total | value << 32 | uint64_t{second.advance} << 48;
      (*addends)[1u << left | bits] = fits ? addend : 0;
    }
}

/// For AcTable::skip: all symbols whose codes lie in the remaining bits; the last one's value may extend past them.
void fill_skip_addends(const std::array<Symbol, kEntries>& symbols, Addends<uint16_t>* addends) {
  (*addends)[1] = 0;
  for (unsigned left = 1; left < kLookupBits; ++left)
    for (unsigned bits = 0; bits < 1u << left; ++bits) {
      const Symbol& next = symbols[bits << (kLookupBits - left)];
      // The symbols before it have less than kLookupBits bits, so all fit into kMaxEntryBits.
      const bool fits = next.length != 0 && next.length <= left && next.total <= kMaxEntryBits - kLookupBits + 1;
      const bool end = next.advance == kEndOfBlock;
      const unsigned rest = end || next.total >= left ? 0 : left - next.total;
      const unsigned further = (*addends)[1u << rest | (bits & ((1u << rest) - 1))];
      const unsigned own = next.total | (end ? kSkipEnd : next.advance) << 6;
      (*addends)[1u << left | bits] = static_cast<uint16_t>(fits ? own + further : 0);
    }
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
  std::array<Symbol, kEntries> symbols{};
  for_each_short_code(from, [&](unsigned at, unsigned span, unsigned length, unsigned symbol) {
    std::fill_n(symbols.begin() + at, span, ac_symbol(length, symbol));
  });
  Addends<uint64_t> pair_addends;
  Addends<uint16_t> skip_addends;
  fill_pair_addends(symbols, &pair_addends);
  fill_skip_addends(symbols, &skip_addends);
  pair.fill(uint64_t{kSingle} << 48);
  skip.fill(kSkipSingle << 6);
  for_each_short_code(from, [&](unsigned at, unsigned span, unsigned length, unsigned symbol) {
    const Symbol first = ac_symbol(length, symbol);
    const uint64_t fields = uint64_t{first.advance} << 8 | uint64_t{63u - first.size} << 16 | uint64_t{length} << 24;
    const bool end = first.advance == kEndOfBlock;
    if (first.total > kMaxEntryBits) {
      std::fill_n(pair.begin() + at, span, fields | uint64_t{kSingle} << 48);
      return;
    }
    const uint64_t pair_base = first.total | fields | uint64_t{first.advance} << 48;
    const unsigned skip_base = first.total | (end ? kSkipEnd : first.advance) << 6;
    const unsigned left = end || first.total >= kLookupBits ? 0 : kLookupBits - first.total;
    for (unsigned i = at; i < at + span; ++i) {
      const unsigned addend = 1u << left | (i & ((1u << left) - 1));
      pair[i] = pair_base + pair_addends[addend];
      skip[i] = static_cast<uint16_t>(skip_base + skip_addends[addend]);
    }
  });
}

}  // namespace headrace
