// Each entry of the look-up tables says of the bits what decoding them bit by bit says.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "core/jpeg/huffman/huffman_table.h"

using namespace headrace;

namespace {

using Random = std::mt19937_64;

constexpr unsigned kEntries = 1u << kLookupBits;

struct Symbol {
  bool valid = false, end = false;
  unsigned length = 0, size = 0, advance = 0;
  int value = 0;
  unsigned total() const { return length + size; }
};

unsigned take(uint64_t bits, unsigned from, unsigned count) {
  unsigned value = 0;
  for (unsigned i = from; i < from + count; ++i) value = value << 1 | (bits >> (63 - i) & 1);
  return value;
}

/// The AC symbol that begins at bit `at`: as annex F of the standard says, one bit after the other.
Symbol symbol_at(const HuffmanSpec& spec, uint64_t bits, unsigned at) {
  unsigned code = 0;
  size_t index = 0;
  for (unsigned length = 1; length <= 16; ++length, code <<= 1)
    for (unsigned i = 0; i < spec.lengths[length]; ++i, ++code, ++index) {
      if (take(bits, at, length) != code) continue;
      Symbol found{true, spec.symbols[index] == 0, length, spec.symbols[index] & 15u, (spec.symbols[index] >> 4) + 1u};
      found.end = found.size == 0 && found.advance != 16;
      const int value = static_cast<int>(take(bits, at + length, found.size));
      const bool positive = found.size == 0 || take(bits, at + length, 1) == 1;
      found.value = positive ? value : value - (1 << found.size) + 1;
      return found;
    }
  return {};
}

struct Seen {
  int singles = 0, pairs = 0, tails = 0, ends = 0;
};

/// What the entry for the first bits of `bits` says of the symbols that they begin with.
void check_decode(const HuffmanSpec& spec, const AcTable& table, uint64_t bits, Seen* seen) {
  const AcEntry& entry = table.decode[bits >> (64 - kLookupBits)];
  const Symbol first = symbol_at(spec, bits, 0);
  const bool single = !first.valid || first.length + (first.size != 0 ? 1 : 0) > kLookupBits || first.total() > 22;
  REQUIRE((entry.advance == kSingle) == single);
  if (single) {
    ++seen->singles;
    return;
  }
  const Symbol second = symbol_at(spec, bits, first.total());
  const bool pair = !first.end && second.valid && first.value >= -128 && first.value <= 127 &&
                    first.total() + second.length + (second.size != 0 ? 1 : 0) <= kLookupBits && second.total() <= 13;
  const Symbol& last = pair ? second : first;
  const auto advance = [](const Symbol& symbol) { return symbol.end ? kEndOfBlock : symbol.advance; };
  REQUIRE(entry.advance_first == advance(first));
  REQUIRE(entry.advance == (pair ? advance(first) : 0) + advance(last));
  REQUIRE(entry.total() == (pair ? first.total() : 0) + last.total());
  REQUIRE(entry.cut == cut_after(entry.total()));
  if (pair) REQUIRE(entry.first == first.value);
  REQUIRE(entry.last + static_cast<int>(bits << kLookupBits >> kLookupBits >> entry.tail) ==
          (last.end ? 0 : last.value));
  seen->pairs += pair ? 1 : 0;
  seen->tails += entry.total() > kLookupBits ? 1 : 0;
  seen->ends += last.end ? 1 : 0;
}

void check_skip(const HuffmanSpec& spec, const AcTable& table, uint64_t bits) {
  const uint32_t entry = table.skip[bits >> (64 - kLookupBits)];
  unsigned total = 0, advance = 0;
  for (;;) {
    const Symbol next = symbol_at(spec, bits, total);
    const bool fits = next.valid && total + next.length <= kLookupBits && next.total() <= (total == 0 ? 22u : 13u);
    if (!fits) break;
    total += next.total();
    advance += next.end ? kSkipEnd : next.advance;
    if (next.end || total >= kLookupBits) break;
  }
  if (total == 0) {
    REQUIRE((entry >> kSkipAdvance) == kSkipSingle);
    return;
  }
  REQUIRE((entry >> kSkipAdvance) == advance);
  REQUIRE((entry & 0xFFFF) == cut_after(total));
}

Seen check(const HuffmanSpec& spec, Random& random) {
  AcTable table;
  table.build(spec);
  Seen seen;
  for (uint64_t lookup = 0; lookup < kEntries; ++lookup)
    for (const uint64_t after : {uint64_t{0}, ~uint64_t{0}, random(), random()}) {
      const uint64_t bits = lookup << (64 - kLookupBits) | after >> kLookupBits;
      CAPTURE(lookup);
      check_decode(spec, table, bits, &seen);
      check_skip(spec, table, bits);
      const Symbol first = symbol_at(spec, bits, 0);
      const AcSymbol& one = table.symbols[lookup];
      const bool is_short = first.valid && first.length <= kLookupBits;
      REQUIRE(one.length == (is_short ? first.length : 0));
      if (is_short) REQUIRE(one.total == first.total());
    }
  return seen;
}

/// All symbols that a baseline scan may have, in random order.
std::vector<uint8_t> all_symbols(Random& random) {
  std::vector<uint8_t> symbols = {0x00, 0xF0};
  for (unsigned run = 0; run < 16; ++run)
    for (unsigned size = 1; size <= 10; ++size) symbols.push_back(static_cast<uint8_t>(run << 4 | size));
  std::shuffle(symbols.begin(), symbols.end(), random);
  return symbols;
}

}  // namespace

TEST_CASE("entries of tables with random codes") {
  Random random(1);
  Seen sum;
  for (int i = 0; i < 40; ++i) {
    const std::vector<uint8_t> symbols = all_symbols(random);
    HuffmanSpec spec;
    std::copy(symbols.begin(), symbols.end(), spec.symbols.begin());
    unsigned free_codes = 1, used = 0;  // codes of a length that may be used; one of the last length stays free
    for (size_t length = 1; length <= 16; ++length) {
      free_codes *= 2;
      const unsigned most = std::min<unsigned>(free_codes - 1, static_cast<unsigned>(symbols.size()) - used);
      const unsigned count = std::uniform_int_distribution<unsigned>(0, std::min(most, 3u + free_codes / 3))(random);
      spec.lengths[length] = static_cast<uint8_t>(count);
      free_codes -= count;
      used += count;
    }
    const Seen seen = check(spec, random);
    sum.singles += seen.singles;
    sum.pairs += seen.pairs;
    sum.tails += seen.tails;
    sum.ends += seen.ends;
  }
  CHECK(std::min({sum.singles, sum.pairs, sum.tails, sum.ends}) > 100);
}

TEST_CASE("entries of codes of all lengths with values of all sizes") {
  Random random(2);
  for (unsigned size = 0; size <= 15; ++size) {  // the sizes above 10 are none of a baseline scan, and must do no harm
    HuffmanSpec spec;
    for (size_t length = 1; length <= 16; ++length) {
      spec.lengths[length] = 1;
      spec.symbols[length - 1] = static_cast<uint8_t>((length - 1) << 4 | ((size + length - 1) % 16));
    }
    CAPTURE(size);
    check(spec, random);
  }
}

TEST_CASE("a value of eight bits after a code of one bit fits no pair") {
  Random random(3);
  HuffmanSpec spec;  // no code is free, which libjpeg refuses
  spec.lengths[1] = 2;
  spec.symbols = {0x08, 0x00};
  const Seen seen = check(spec, random);
  CHECK(seen.singles == 0);
  CHECK(seen.pairs > 0);
}

TEST_CASE("a table with more codes than can exist is built within its bounds") {
  HuffmanSpec spec;
  spec.lengths.fill(255);
  std::iota(spec.symbols.begin(), spec.symbols.end(), uint8_t{0});
  AcTable table;
  table.build(spec);
  CHECK(table.symbols[0].length == 1);
}
