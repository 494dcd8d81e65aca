// Look-up tables for Huffman codes of JPEG: from the next bits to one or two decoded symbols.
#pragma once

#include <array>
#include <cstdint>

namespace headrace {

/// A table as a DHT segment gives it: how many codes of each length (1 to 16), and their symbols in order.
struct HuffmanSpec {
  std::array<uint8_t, 17> lengths{};  // [0] unused
  std::array<uint8_t, 256> symbols{};
  bool operator==(const HuffmanSpec&) const = default;
};

/// So many bits select an entry. 10: all tables of an image stay in L1, and under 1% of the symbols have longer codes.
inline constexpr int kLookupBits = 10;

/// A code that no entry holds, found by its length. Codes of one length are consecutive numbers.
class LongCodes {
 public:
  void build(const HuffmanSpec& spec);
  /// The symbol that `bits` (left-aligned) begin with, if its code is longer than kLookupBits; -1 if there is none.
  int find(uint64_t bits, int* length) const;

 private:
  std::array<uint32_t, 17> end_{};  // first 16-bit prefix past the codes of this length
  std::array<int, 17> offset_{};    // code + offset = index of its symbol
  std::array<uint8_t, 256> symbols_{};
};

/// DC: the symbol is a number of bits. Entry: total length | code length << 8 | size << 16; 0: a long code.
struct DcTable {
  HuffmanSpec spec;
  std::array<uint32_t, 1 << kLookupBits> entry{};
  LongCodes long_codes;
  void build(const HuffmanSpec& from);
};

/// How far a symbol moves the position in its block: run + 1 coefficients, or this far past the end.
inline constexpr unsigned kEndOfBlock = 128;
/// In AcTable::pair: this entry is not a pair, take one symbol by its length and size (length 0: a long code).
inline constexpr unsigned kSingle = 512;
/// In AcTable::skip: how far the position moves at an end of block, beside the coefficients before it.
inline constexpr unsigned kSkipEnd = 192;
/// In AcTable::skip: take one symbol with the help of `pair`.
inline constexpr unsigned kSkipSingle = 128;
/// No entry consumes more, so that two entries and the next look-up fit the 56 bits of one refill: 2 * 22 + 10 < 56.
inline constexpr unsigned kMaxEntryBits = 22;

struct AcTable {
  AcTable() { build({}); }  // of no codes: every symbol is wrong
  HuffmanSpec spec;
  /// The next symbol, and the one after it if the look-up holds that one whole with its value:
  /// total length | advance of the first << 8 | (63 - its size) << 16 | its code length << 24 | value of the second <<
  /// 32 | advance of both << 48.
  std::array<uint64_t, 1 << kLookupBits> pair{};
  /// As many symbols as have their codes in the look-up, for blocks that nobody wants: total length | advance << 6.
  std::array<uint16_t, 1 << kLookupBits> skip{};
  LongCodes long_codes;
  void build(const HuffmanSpec& from);
};

}  // namespace headrace
