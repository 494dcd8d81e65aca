// The implementation of the loops that scan_loops.h declares. Each file that includes it compiles it for its own
// instruction set.
//
// Note [masks]: a refining scan has a correction bit for each coefficient that earlier scans made, and counts its runs
// in coefficients that are still zero. So it cannot be read without the positions of both. A mask of 64 bits per block
// is enough for that: a run is the n-th set bit, the number of correction bits a count of bits. For blocks outside the
// window only the mask is kept.
#pragma once

#include <bit>
#include <cstdint>

#include "core/jpeg/huffman/huffman_block.h"
#include "core/jpeg/progressive/scan_loops.h"

namespace headrace {
namespace {

/// Bits `first` to `last`.
inline uint64_t band_mask(int first, int last) { return (~uint64_t{0} >> (63 - last)) & (~uint64_t{0} << first); }

ALWAYS_INLINE Bits bits_of(const ScanPosition& position) { return {position.bits, position.next, position.count}; }

ALWAYS_INLINE void keep(const Bits& in, ScanPosition* position) {
  position->bits = in.bits;
  position->next = in.next;
  position->count = in.count;
}

ALWAYS_INLINE bool past_the_end(const Bits& in, const uint8_t* end) {
  return (in.next - end) * 8 > static_cast<ptrdiff_t>(in.count);
}

/// The next symbol; its code is not consumed. Afterwards at least 56 bits are valid, and 26 after the longest symbol.
ALWAYS_INLINE AcScanSymbol next_symbol(Bits* in, const AcScanTable& table) {
  AcScanSymbol symbol = table.at(in->lookup());
  in->refill();
  if (symbol.code_length() == 0) [[unlikely]]
    symbol = table.find(in->bits);
  return symbol;
}

/// The number of blocks whose band a symbol ends, including this one.
ALWAYS_INLINE uint32_t blocks_ended(const Bits& in, AcScanSymbol symbol) {
  const unsigned size = symbol.size();
  const uint64_t more = (in.bits << symbol.code_length()) >> 1 >> (63 - size);
  return (uint32_t{1} << size) + static_cast<uint32_t>(more);
}

template <bool kStored, bool kMasked>
ALWAYS_INLINE bool first_scan(ScanPosition* position, const AcBand& band, int blocks, uint64_t* masks,
                              int16_t* coefficients) {
  Bits in = bits_of(*position);
  uint32_t ended = position->ended;
  const unsigned begin = static_cast<unsigned>(band.first), limit = static_cast<unsigned>(band.last) + 1;
  for (int b = 0; b < blocks; ++b) {
    if (ended != 0) {
      const uint32_t left = static_cast<uint32_t>(blocks - b), passed = ended < left ? ended : left;
      ended -= passed;
      b += static_cast<int>(passed) - 1;
      continue;
    }
    uint64_t mask = 0;
    for (unsigned k = begin; k < limit;) {
      const AcScanSymbol symbol = next_symbol(&in, *band.table);
      if (k + symbol.advance() > limit) {
        if (symbol.advance() != AcScanSymbol::kEnd) return false;
        ended = blocks_ended(in, symbol) - 1;
        in.drop(symbol.total());
        break;
      }
      k += symbol.advance();
      if constexpr (kStored) {
        const int value = extend(in.bits << symbol.code_length(), 63 - symbol.size());
        // A run of 16 zeros has no value: it stores the zero that is there.
        coefficients[size_t{64} * static_cast<size_t>(b) + kNaturalOrder[k - 1]] =
            static_cast<int16_t>(value << band.low);
      }
      if constexpr (kMasked) mask |= uint64_t{symbol.size() != 0} << (k - 1);
      in.drop(symbol.total());
    }
    if constexpr (kMasked) masks[b] |= mask;
    if (past_the_end(in, position->end)) return false;
  }
  keep(in, position);
  position->ended = ended;
  return true;
}

/// The bits in reversed order.
ALWAYS_INLINE uint64_t reversed(uint64_t v) {
  v = (v >> 1 & 0x5555555555555555u) | (v & 0x5555555555555555u) << 1;
  v = (v >> 2 & 0x3333333333333333u) | (v & 0x3333333333333333u) << 2;
  v = (v >> 4 & 0x0F0F0F0F0F0F0F0Fu) | (v & 0x0F0F0F0F0F0F0F0Fu) << 4;
  return __builtin_bswap64(v);
}

/// `Select`: deposit(bits, mask), as the instruction PDEP; nth(mask, n): the set bit of `mask` with n set bits below
/// it, or 0.
template <class Select, bool kStored>
ALWAYS_INLINE bool refining_scan(ScanPosition* position, const AcBand& band, int blocks, uint64_t* masks,
                                 int16_t* coefficients) {
  constexpr unsigned kAtOnce = 24;  // correction bits
  Bits in = bits_of(*position);
  uint32_t ended = position->ended;
  const uint64_t whole = band_mask(band.first, band.last);
  const int bit = 1 << band.low;
  for (int b = 0; b < blocks; ++b) {
    const uint64_t history = masks[b] & whole;
    int16_t* const block = kStored ? coefficients + size_t{64} * static_cast<size_t>(b) : nullptr;
    uint64_t rest = whole, added = 0;
    uint64_t corrections = 0;  // the bit of the last coefficient is the lowest
    const auto take = [&](unsigned count) {
      for (; count > kAtOnce; count -= kAtOnce) {
        if constexpr (kStored) corrections = corrections << kAtOnce | in.bits >> (64 - kAtOnce);
        in.drop(kAtOnce);
        in.refill();
      }
      if constexpr (kStored) corrections = corrections << count | in.bits >> 1 >> (63 - count);
      in.drop(count);
    };
    while (ended == 0 && rest != 0) {
      if (in.count < kLookupBits) [[unlikely]]
        in.refill();
      const AcScanSymbol symbol = next_symbol(&in, *band.table);
      if (symbol.advance() >= AcScanSymbol::kEnd) {
        if (symbol.advance() != AcScanSymbol::kEnd) return false;
        ended = blocks_ended(in, symbol);
        in.drop(symbol.total());
        break;
      }
      const uint64_t at = Select::nth(rest & ~history, symbol.advance() - 1);
      if (at == 0) [[unlikely]]
        return false;  // an error that libjpeg would tolerate
      const unsigned count = static_cast<unsigned>(std::popcount(history & rest & (at - 1)));
      const uint64_t made = symbol.size() != 0 ? at : 0;  // the last of 16 zeros remains one
      added |= made;
      if constexpr (kStored) {
        const int sign = static_cast<int>(static_cast<int64_t>(in.bits << symbol.code_length()) >> 63);  // 0: negative
        const int value = symbol.size() != 0 ? (bit & sign) - (bit & ~sign) : 0;
        block[kNaturalOrder[static_cast<size_t>(std::countr_zero(at))]] = static_cast<int16_t>(value);
      }
      rest &= ~(at | (at - 1));
      in.drop(symbol.total());
      take(count);
    }
    if (ended != 0) {
      in.refill();
      take(static_cast<unsigned>(std::popcount(history & rest)));
      --ended;
    }
    masks[b] |= added;
    if constexpr (kStored) {
      const int count = std::popcount(history);
      if (count != 0)
        for (uint64_t ones = Select::deposit(reversed(corrections << (64 - count)), history); ones != 0;
             ones &= ones - 1) {
          int16_t& value = block[kNaturalOrder[static_cast<size_t>(std::countr_zero(ones))]];
          value = static_cast<int16_t>(value + (value < 0 ? -bit : bit));
        }
    }
    if (past_the_end(in, position->end)) return false;
  }
  keep(in, position);
  position->ended = ended;
  return true;
}

bool read_first(ScanPosition* position, const AcBand& band, int blocks, uint64_t* masks, int16_t* coefficients) {
  if (coefficients == nullptr)
    return masks == nullptr ? first_scan<false, false>(position, band, blocks, masks, coefficients)
                            : first_scan<false, true>(position, band, blocks, masks, coefficients);
  return masks == nullptr ? first_scan<true, false>(position, band, blocks, masks, coefficients)
                          : first_scan<true, true>(position, band, blocks, masks, coefficients);
}

template <class Select>
bool read_refining(ScanPosition* position, const AcBand& band, int blocks, uint64_t* masks, int16_t* coefficients) {
  return coefficients == nullptr ? refining_scan<Select, false>(position, band, blocks, masks, coefficients)
                                 : refining_scan<Select, true>(position, band, blocks, masks, coefficients);
}

}  // namespace
}  // namespace headrace
