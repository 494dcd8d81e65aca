// Decodes the Huffman codes of one block, or skips them. Internal to huffman.cpp.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/jpeg/huffman_table.h"

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
  /// Makes at least 56 bits valid. Bits past `count` may be set already; the OR sets them to the same values.
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

struct Step {
  enum Outcome : uint32_t { kWrong, kGoOn, kBlockDone };
  uint64_t bits;
  const uint8_t* next;
  unsigned count;
  size_t k;
  Outcome outcome;
};

/// Decodes one AC symbol that the tables do not cover: a long code, a long value, a block filled to its end, damage.
/// Needs 31 valid bits. Takes and returns scalars: if the address of the caller's Bits were taken, they would live in
/// memory, and every block would wait for a store to be loaded again.
[[gnu::noinline]] Step single_step(uint64_t bits, const uint8_t* next, unsigned count, size_t k, const AcTable& table,
                                   int16_t* block) {
  Bits in{bits, next, count};
  const auto result = [&](Step::Outcome outcome) { return Step{in.bits, in.next, in.count, k, outcome}; };
  const uint64_t entry = table.pair[in.lookup()];
  unsigned length = entry >> 24 & 255, complement = entry >> 16 & 255, advance = entry >> 8 & 255;
  if (length == 0) {
    int long_length = 0;
    const int symbol = table.long_codes.find(in.bits, &long_length);
    if (symbol < 0) return result(Step::kWrong);
    length = static_cast<unsigned>(long_length);
    const unsigned size = symbol & 15, run = static_cast<unsigned>(symbol) >> 4;
    complement = 63 - size;
    advance = size == 0 && run != 15 ? kEndOfBlock : run + 1;
  }
  const int value = extend(in.bits << length, complement);
  in.drop(length + 63 - complement);
  in.refill();
  if (advance == kEndOfBlock) return result(Step::kBlockDone);
  k += advance;
  if (k > 64) return result(Step::kWrong);  // libjpeg would continue
  if (block != nullptr) block[kNaturalOrder[k - 1]] = static_cast<int16_t>(value);
  return result(k == 64 ? Step::kBlockDone : Step::kGoOn);
}

/// single_step() on the caller's state.
ALWAYS_INLINE Step::Outcome step(Bits* in, size_t* k, const AcTable& table, int16_t* block) {
  const Step after = single_step(in->bits, in->next, in->count, *k, table, block);
  in->bits = after.bits;
  in->next = after.next;
  in->count = after.count;
  *k = after.k;
  return after.outcome;
}

/// Decodes the AC coefficients of a block into `block`. False: damage.
ALWAYS_INLINE bool read_ac(Bits* in, const AcTable& table, int16_t* block) {
  size_t k = 1;  // the next coefficient's place in zigzag order
  uint64_t entry;
  size_t first, both;  // k after the entry's first symbol, and after both
  int value;
  const auto look = [&] {
    entry = table.pair[in->lookup()];
    first = k + (entry >> 8 & 255);
    both = k + (entry >> 48);
  };
  const auto extend_first = [&] {
    value = extend(in->bits << (entry >> 24 & 63), static_cast<unsigned>(entry >> 16) & 63);
  };
  const auto take = [&] {
    extend_first();
    // The second value first: if there is none, both places are equal, and the first value must remain.
    block[kNaturalOrder[both - 1]] = static_cast<int16_t>(entry >> 32);
    block[kNaturalOrder[first - 1]] = static_cast<int16_t>(value);
    k = both;
    in->drop(entry & 255);
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
    if (both >= kEndOfBlock && both < kSingle && (first < 64 || first >= kEndOfBlock)) {
      extend_first();
      block[kNaturalOrder[first - 1]] = static_cast<int16_t>(value);
      in->drop(entry & 255);
      return true;
    }
    const Step::Outcome outcome = step(in, &k, table, block);
    if (outcome != Step::kGoOn) return outcome == Step::kBlockDone;
  }
}

/// Skips the AC coefficients of a block. False: damage.
ALWAYS_INLINE bool skip_ac(Bits* in, const AcTable& table) {
  size_t k = 1;
  for (;;) {
    unsigned entry = table.skip[in->lookup()];
    in->refill();
    if (k + (entry >> 6) <= 63) [[likely]] {
      k += entry >> 6;
      in->drop(entry & 63);
      entry = table.skip[in->lookup()];
      if (k + (entry >> 6) <= 63) [[likely]] {
        k += entry >> 6;
        in->drop(entry & 63);
        continue;
      }
    }
    if (entry >> 6 >= kSkipEnd && k + (entry >> 6) < 64 + kSkipEnd) {
      in->drop(entry & 63);
      return true;
    }
    const Step::Outcome outcome = step(in, &k, table, nullptr);
    if (outcome != Step::kGoOn) return outcome == Step::kBlockDone;
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
