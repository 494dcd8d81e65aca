// Decodes the Huffman codes of one block of a sequential scan, or skips them; its bit reader also serves progressive/.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/jpeg/huffman/huffman_table.h"

#define ALWAYS_INLINE [[gnu::always_inline]] inline

namespace headrace {
namespace {

// Zigzag to natural order. Positions past the end of a block, up to 63 + kEndOfBlock, map to the last coefficient: it
// is still zero then, and only zeros are written to it.
constexpr auto kNaturalOrder = [] {
  std::array<uint8_t, 256> order{};
  size_t n = 0;
  for (unsigned diagonal = 0; diagonal < 15; ++diagonal)
    for (unsigned i = 0; i <= diagonal; ++i) {
      const unsigned row = diagonal % 2 != 0 ? i : diagonal - i, column = diagonal - row;
      if (row < 8 && column < 8) order[n++] = static_cast<uint8_t>(row * 8 + column);
    }
  while (n < order.size()) order[n++] = 63;
  return order;
}();

ALWAYS_INLINE uint64_t load_big_endian(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  return value;
}

/// The next bits, left-aligned. Between symbols at least kLookupBits of them are valid, see kMaxEntryBits.
struct Bits {
  uint64_t bits = 0;
  const uint8_t* next = nullptr;
  unsigned count = 0;  // valid bits

  ALWAYS_INLINE uint64_t lookup() const { return bits >> (64 - kLookupBits); }
  /// Makes at least 56 bits valid. Bits after `count` may be set already; the OR sets them to the same values.
  ALWAYS_INLINE void refill() {
    bits |= load_big_endian(next) >> count;
    next += (63 - count) >> 3;
    count |= 56;
  }
  ALWAYS_INLINE void drop(unsigned n) {  // below 64
    bits <<= n;
    count -= n;
  }
};

/// The signed value of the first 63 - `complement` bits. Branch-free, since sizes are hard to predict.
ALWAYS_INLINE int extend(uint64_t bits, unsigned complement) {
  const uint64_t negative = ~static_cast<uint64_t>(static_cast<int64_t>(bits) >> 63);  // all ones if the first bit is 0
  const int magnitude = static_cast<int>((bits ^ negative) >> 1 >> (complement & 63));
  return (magnitude ^ static_cast<int>(negative)) - static_cast<int>(negative);
}

struct SymbolStep {
  enum Outcome : uint32_t { kWrong, kGoOn, kBlockDone };
  uint64_t bits;
  const uint8_t* next;
  unsigned count;
  size_t k;
  Outcome outcome;
};

/// Decodes one AC symbol that the tables do not cover: a long code, a long value, a block filled to its end, damage.
/// Needs 31 valid bits. Takes and returns scalars: if the address of the caller's Bits were taken, they would live in
/// memory, and every block would wait for a store to be reloaded.
[[gnu::noinline]] SymbolStep single_step(uint64_t bits, const uint8_t* next, unsigned count, size_t k,
                                         const AcTable& table, int16_t* block) {
  Bits in{bits, next, count};
  const auto result = [&](SymbolStep::Outcome outcome) { return SymbolStep{in.bits, in.next, in.count, k, outcome}; };
  AcSymbol one = table.symbols[in.lookup()];
  if (one.length == 0) {
    int length = 0;
    const int symbol = table.long_codes.find(in.bits, &length);
    if (symbol < 0) return result(SymbolStep::kWrong);
    one = ac_symbol(static_cast<unsigned>(length), static_cast<unsigned>(symbol));
  }
  const int value = extend(in.bits << one.length, 63u - one.size);
  in.drop(one.total);
  in.refill();
  if (one.advance == kEndOfBlock) return result(SymbolStep::kBlockDone);
  k += one.advance;
  if (k > 64) return result(SymbolStep::kWrong);  // an error that libjpeg would tolerate
  if (block != nullptr) block[kNaturalOrder[k - 1]] = static_cast<int16_t>(value);
  return result(k == 64 ? SymbolStep::kBlockDone : SymbolStep::kGoOn);
}

/// single_step() on the caller's state.
ALWAYS_INLINE SymbolStep::Outcome step(Bits* in, size_t* k, const AcTable& table, int16_t* block) {
  const SymbolStep after = single_step(in->bits, in->next, in->count, *k, table, block);
  in->bits = after.bits;
  in->next = after.next;
  in->count = after.count;
  *k = after.k;
  return after.outcome;
}

/// The look-up after the bits that an entry consumes; `cut`: from cut_after(), higher bits do not matter. The next
/// entry depends on the last one, so each cycle counts: kFast cuts the field out with one instruction (BMI1), where a
/// shift and a mask are two.
template <bool kFast>
ALWAYS_INLINE uint64_t lookup_after(uint64_t bits, uint32_t cut) {
#if defined(__x86_64__)
  if constexpr (kFast) {  // the intrinsic cannot be inlined into code that is also compiled without BMI1
    uint64_t field;
    asm("bextr %1, %2, %0" : "=r"(field) : "r"(uint64_t{cut}), "r"(bits) : "cc");
    return field;
  }
#endif
  return bits >> (cut & 63) & ((uint64_t{1} << kLookupBits) - 1);
}

/// Decodes the AC coefficients of a block into `block`. False: damage. kFast: with BMI1.
template <bool kFast>
ALWAYS_INLINE bool read_ac(Bits* in, const AcTable& table, int16_t* block) {
  size_t k = 1;        // the next coefficient's position in zigzag order
  size_t first, both;  // k after the entry's first symbol, and after all
  const AcEntry* entries = table.decode.data();
  const AcEntry* entry = entries + in->lookup();
  const auto look = [&] {
    first = k + entry->advance_first;
    both = k + entry->advance;
  };
  const auto store = [&] {
    constexpr uint64_t kBehind = (uint64_t{1} << (64 - kLookupBits)) - 1;
    // The first value is written first: if there is only one, both positions are equal, and the last value must remain.
    block[kNaturalOrder[first - 1]] = entry->first;
    block[kNaturalOrder[both - 1]] =
        static_cast<int16_t>(entry->last + static_cast<int>((in->bits & kBehind) >> (entry->tail & 63)));
  };
  const auto take = [&] {
    const AcEntry* next = entries + lookup_after<kFast>(in->bits, entry->cut);
    const unsigned total = entry->total();
    store();
    k = both;
    in->drop(total);
    entry = next;
  };
  for (;;) {
    look();
    in->refill();
    if (both <= 63) [[likely]] {
      take();
      look();
      if (both <= 63) [[likely]] {
        take();
        continue;
      }
    }
    const bool ends = both >= kEndOfBlock && both < kSingle && (first < 64 || first >= kEndOfBlock);
    if (ends || both == 64) {
      store();
      in->drop(entry->total());
      return true;
    }
    if (first == 64) {
      block[63] = entry->first;
      in->drop(table.symbols[in->lookup()].total);
      return true;
    }
    const SymbolStep::Outcome outcome = step(in, &k, table, block);
    if (outcome != SymbolStep::kGoOn) return outcome == SymbolStep::kBlockDone;
    entry = entries + in->lookup();
  }
}

/// The bits of the symbols of an entry of AcTable::decode that fill a block of `k` coefficients to its end, which has
/// no end-of-block symbol then; 0: they do not. In ImageNet's files half of what single_step() decoded ended such a
/// block.
ALWAYS_INLINE unsigned bits_to_full(const AcTable& table, uint64_t lookup, size_t k) {
  const AcEntry& entry = table.decode[lookup];
  if (k + entry.advance_first == 64) return table.symbols[lookup].total;  // without the second one
  return k + entry.advance == 64 ? entry.total() : 0;
}

/// Skips the AC coefficients of a block. False: damage. kFast: with BMI1.
template <bool kFast>
ALWAYS_INLINE bool skip_ac(Bits* in, const AcTable& table) {
  size_t k = 1;
  uint32_t entry = table.skip[in->lookup()];
  const auto advance = [&] { return k + (entry >> kSkipAdvance); };  // k after the entry
  const auto drop = [&] { in->drop(64 - kLookupBits - (entry & 63)); };
  const auto take = [&] {
    const uint32_t next = table.skip[lookup_after<kFast>(in->bits, entry)];
    k = advance();
    drop();
    entry = next;
  };
  for (;;) {
    in->refill();
    if (advance() <= 63) [[likely]] {
      take();
      if (advance() <= 63) [[likely]] {
        take();
        continue;
      }
    }
    if (entry >> kSkipAdvance >= kSkipEnd && advance() < 64 + kSkipEnd) {
      drop();
      return true;
    }
    if (const unsigned last = bits_to_full(table, in->lookup(), k); last != 0) {
      in->drop(last);
      return true;
    }
    const SymbolStep::Outcome outcome = step(in, &k, table, nullptr);
    if (outcome != SymbolStep::kGoOn) return outcome == SymbolStep::kBlockDone;
    entry = table.skip[in->lookup()];
  }
}

ALWAYS_INLINE bool read_dc(Bits* in, const DcTable& table, int* difference) {
  const uint32_t entry = table.entry[in->lookup()];
  in->refill();
  unsigned length = entry >> 8 & 255, size = entry >> 16;
  if (entry == 0) [[unlikely]] {
    int long_length = 0;
    const int symbol = table.long_codes.find(in->bits, &long_length);
    if (symbol < 0 || symbol > 15) return false;
    length = static_cast<unsigned>(long_length);
    size = static_cast<unsigned>(symbol);
  }
  *difference = extend(in->bits << length, 63 - size);
  in->drop(length + size);
  return true;
}

}  // namespace
}  // namespace headrace
