// Huffman tables for vectors: a lane of 32 bits looks its next symbol up by byte permutes, in registers.
#include "core/jpeg/huffman/lane_tables.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr unsigned kZeroExponent = 127 + 31;  // of a float whose integer has no leading zeros

void clear(LaneTables::Bytes* bytes, unsigned kind) {
  std::fill_n(bytes->begin() + kind * LaneTables::kSlots, LaneTables::kSlots, uint8_t{0});
}

/// Calls fill(code, code length, symbol) for each code. False: too many codes.
template <typename Fill>
bool for_each_code(const HuffmanSpec& spec, Fill fill) {
  unsigned code = 0;
  size_t index = 0;
  for (unsigned length = 1; length <= 16; ++length, code <<= 1)
    for (unsigned i = 0; i < spec.lengths[length]; ++i, ++code, ++index) {
      if (code >> length != 0 || index >= spec.symbols.size()) return false;
      fill(code, length, unsigned{spec.symbols[index]});
    }
  return true;
}

}  // namespace

bool LaneTables::build(unsigned kind, const HuffmanSpec& dc_spec, const HuffmanSpec& ac_spec) {
  Built& built = built_[kind];
  if (built.fine && built.dc == dc_spec && built.ac == ac_spec) return true;
  built = {false, dc_spec, ac_spec};
  dc_codes[kind].build(dc_spec);
  ac_codes[kind].build(ac_spec);
  for (size_t half = 0; half < 2; ++half) {
    for (Bytes* bytes : {&ac[half].bits, &ac[half].advance, &ac[half].size}) clear(bytes, kind);
    for (Bytes* bytes : {&dc[half].bits, &dc[half].size}) clear(bytes, kind);
  }
  const unsigned first = kind * kSlots;
  const auto fill_slots = [&](const HuffmanSpec& spec, auto fill) {
    return for_each_code(spec, [&](unsigned code, unsigned length, unsigned symbol) {
      unsigned ones = 0;
      while (ones < length && (code >> (length - 1 - ones) & 1) != 0) ++ones;
      if (ones == length || length > ones + 4) return;
      const unsigned after = length - ones - 1;  // bits after the first zero
      const unsigned from = (code & ((1u << after) - 1)) << (3 - after);
      for (unsigned three = from; three < from + (1u << (3 - after)); ++three) {
        const unsigned slot = (kZeroExponent - ones) % 8 << 3 | (7 - three);
        if (slot != kNoSlot) fill(ones / 8, first + slot, length, symbol);
      }
    });
  };
  const bool dc_fine = fill_slots(dc_spec, [&](unsigned half, unsigned slot, unsigned length, unsigned symbol) {
    if (symbol > 15 || length + symbol > kMostBits) return;
    dc[half].bits[slot] = static_cast<uint8_t>(length + symbol);
    dc[half].size[slot] = static_cast<uint8_t>(symbol);
  });
  const bool ac_fine = fill_slots(ac_spec, [&](unsigned half, unsigned slot, unsigned length, unsigned symbol) {
    const AcSymbol one = ac_symbol(length, symbol);
    if (one.total > kMostBits) return;
    ac[half].bits[slot] = one.total;
    ac[half].size[slot] = one.size;
    ac[half].advance[slot] = one.advance;
  });
  built.fine = dc_fine && ac_fine;
  return built.fine;
}

}  // namespace headrace
