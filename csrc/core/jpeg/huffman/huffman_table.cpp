// Look-up tables for Huffman codes of JPEG: from the next bits to one or more symbols.
#include "core/jpeg/huffman/huffman_table.h"

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

using AcSymbols = std::array<AcSymbol, kEntries>;

/// Values that depend only on the bits after an entry's first symbol, at [1 << left | bits], if `left` bits of the
/// look-up remain and have the value `bits`. Optimised files have tables of their own (157 of 160 ImageNet files), so
/// building these must cost less than they save.
template <typename Rest>
using Rests = std::array<Rest, kEntries>;

/// Bits of the look-up that remain after this symbol.
unsigned bits_left(const AcSymbol& first) {
  return first.advance == kEndOfBlock || first.total >= kLookupBits ? 0 : kLookupBits - first.total;
}

/// The value of a symbol whose code is followed by `after` bits of the look-up, the last ones of `bits`, as if the bits
/// after the look-up were 0. Adding those completes it, also for negative values, if the look-up contains the sign.
int value_seen(const AcSymbol& symbol, unsigned after, unsigned bits) {
  const unsigned seen = std::min<unsigned>(symbol.size, after), unseen = symbol.size - seen;
  return extend((bits >> (after - seen) & ((1u << seen) - 1)) << unseen, symbol.size);
}

/// AcEntry::tail of an entry with `total` bits.
uint8_t tail_of(unsigned total) { return static_cast<uint8_t>(64 - std::max(total, unsigned{kLookupBits})); }

/// The second symbol of an AcEntry.
struct Second {
  int16_t value = 0;
  uint8_t total = 0;  // 0: there is none
  uint8_t tail = 0;
  uint8_t advance = 0;
};

void fill_seconds(const AcSymbols& symbols, unsigned most_left, Rests<Second>* seconds) {
  (*seconds)[1] = {};  // no bits left
  for (unsigned left = 1; left <= most_left; ++left)
    for (unsigned bits = 0; bits < 1u << left; ++bits) {
      const AcSymbol& second = symbols[bits << (kLookupBits - left)];
      // The symbol before it has less than kLookupBits bits, so both fit into kMaxEntryBits.
      const bool fits = second.length != 0 && second.length + (second.size != 0 ? 1u : 0u) <= left &&
                        second.total <= kMaxEntryBits - kLookupBits + 1;
      (*seconds)[1u << left | bits] =
          fits ? Second{static_cast<int16_t>(value_seen(second, left - second.length, bits)), second.total,
                        tail_of(kLookupBits - left + second.total), second.advance}
               : Second{};
    }
}

/// For AcTable::skip: all symbols whose codes are in the remaining bits; the last one's value may extend past them.
void fill_skip_addends(const AcSymbols& symbols, unsigned most_left, Rests<uint32_t>* addends) {
  (*addends)[1] = 0;
  for (unsigned left = 1; left <= most_left; ++left)
    for (unsigned bits = 0; bits < 1u << left; ++bits) {
      const AcSymbol& next = symbols[bits << (kLookupBits - left)];
      // The symbols before it have less than kLookupBits bits, so all fit into kMaxEntryBits.
      const bool fits = next.length != 0 && next.length <= left && next.total <= kMaxEntryBits - kLookupBits + 1;
      const bool end = next.advance == kEndOfBlock;
      const unsigned rest = end || next.total >= left ? 0 : left - next.total;
      const uint32_t further = (*addends)[1u << rest | (bits & ((1u << rest) - 1))];
      const uint32_t own = uint32_t{end ? kSkipEnd : next.advance} << kSkipAdvance;
      (*addends)[1u << left | bits] = fits ? own + further - next.total : 0;
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

int LongCodes::find(uint64_t bits, int* length, unsigned longer_than) const {
  const uint32_t prefix = static_cast<uint32_t>(bits >> 48);
  for (unsigned n = longer_than + 1; n <= 16; ++n) {
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
  symbols.fill({});
  unsigned most_left = 0;  // 7 with usual tables, whose rests are a quarter of the maximum
  for_each_short_code(from, [&](unsigned at, unsigned span, unsigned length, unsigned symbol) {
    const AcSymbol one = ac_symbol(length, symbol);
    std::fill_n(symbols.begin() + at, span, one);
    most_left = std::max(most_left, bits_left(one));
  });
  Rests<Second> seconds;
  Rests<uint32_t> skip_addends;
  fill_seconds(symbols, most_left, &seconds);
  fill_skip_addends(symbols, most_left, &skip_addends);
  decode.fill({});
  skip.fill(kSkipSingle << kSkipAdvance);
  for_each_short_code(from, [&](unsigned at, unsigned span, unsigned length, unsigned /*symbol*/) {
    const AcSymbol first = symbols[at];
    if (first.total > kMaxEntryBits) return;
    const unsigned rest = 1u << bits_left(first);  // entries that differ only in what follows the symbol
    const uint32_t skip_base =
        cut_after(first.total) | uint32_t{first.advance == kEndOfBlock ? kSkipEnd : first.advance} << kSkipAdvance;
    for (unsigned i = at; i < at + span; i += rest)
      for (unsigned j = 0; j < rest; ++j) skip[i + j] = skip_base + skip_addends[rest + j];
    if (first.size != 0 && length == kLookupBits) return;  // the sign is not in the look-up
    for (unsigned i = at; i < at + span; i += rest) {
      const int value = value_seen(first, kLookupBits - length, i);
      const bool fits_first = value == static_cast<int8_t>(value);
      const AcEntry alone{static_cast<uint16_t>(cut_after(first.total)),
                          tail_of(first.total),
                          first.advance,
                          static_cast<int16_t>(value),
                          0,
                          first.advance};
      for (unsigned j = 0; j < rest; ++j) {
        const Second& second = seconds[rest + j];
        decode[i + j] = second.total == 0 || !fits_first
                            ? alone
                            : AcEntry{static_cast<uint16_t>(alone.cut - second.total),
                                      second.tail,
                                      first.advance,
                                      second.value,
                                      static_cast<int8_t>(value),
                                      static_cast<uint8_t>(first.advance + second.advance)};
      }
    }
  });
}

}  // namespace headrace
