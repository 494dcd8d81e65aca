// Look-up tables for Huffman codes of JPEG: from the next bits to one or more symbols.
#pragma once

#include <array>
#include <cstdint>

namespace headrace {

/// A table as in a DHT segment: the number of codes of each length (1 to 16), and their symbols in order.
struct HuffmanSpec {
  std::array<uint8_t, 17> lengths{};  // [0] unused
  std::array<uint8_t, 256> symbols{};
  bool operator==(const HuffmanSpec&) const = default;
};

/// Bits that select an entry. With 10, all tables of an image stay in L1, and under 1% of symbols have longer codes.
inline constexpr int kLookupBits = 10;

/// Finds codes by their length: those that are too long for an entry, or all. Codes of one length are consecutive
/// numbers.
class LongCodes {
 public:
  void build(const HuffmanSpec& spec);
  /// The symbol of the code at the beginning of `bits` (left-aligned), if the code is longer than `longer_than` bits;
  /// sets *length to the code's length. -1: there is none.
  int find(uint64_t bits, int* length, unsigned longer_than = kLookupBits) const;

 private:
  std::array<uint32_t, 17> end_{};  // first 16-bit prefix past the codes of this length
  std::array<int, 17> offset_{};    // code + offset = index of its symbol
  std::array<uint8_t, 256> symbols_{};
};

/// A DC symbol is the number of bits of its value. Entry: total length | code length << 8 | size << 16; 0: a long code.
struct DcTable {
  HuffmanSpec spec;
  std::array<uint32_t, 1 << kLookupBits> entry{};
  LongCodes long_codes;
  void build(const HuffmanSpec& from);
};

/// Advance of an end of block: past the end from any position. Any other symbol advances by run + 1 coefficients.
inline constexpr unsigned kEndOfBlock = 128;
/// In AcTable::decode: the advance of an entry that holds no symbol; decode one with AcTable::symbols.
inline constexpr unsigned kSingle = 255;
/// In AcTable::skip: the advance of an end of block, added to that of the coefficients before it.
inline constexpr unsigned kSkipEnd = 192;
/// In AcTable::skip: decode one symbol with AcTable::symbols.
inline constexpr unsigned kSkipSingle = 128;
/// In AcTable::skip: the first bit of the advance.
inline constexpr unsigned kSkipAdvance = 16;
/// Most bits that an entry consumes: two entries and the next look-up fit into one refill, 2 * 22 + 10 < 56.
inline constexpr unsigned kMaxEntryBits = 22;

/// Operand that cuts the next look-up out of the bits after the `total` bits of an entry: 64 - kLookupBits - total |
/// kLookupBits << 8, the operand of bextr.
constexpr unsigned cut_after(unsigned total) { return 64u - kLookupBits - total + (unsigned{kLookupBits} << 8); }

/// One AC symbol, or two if the code of the second and the sign of its value are in the look-up. Loads of single fields
/// cost less than shifts of the whole entry: arithmetic units are the bottleneck of the decoder, not loads.
struct AcEntry {
  uint16_t cut = cut_after(0);
  uint8_t tail = 64 - kLookupBits;  // the bits after the look-up >> tail: those that belong to the last value
  uint8_t advance_first = kEndOfBlock;
  int16_t last = 0;           // the last symbol's value, as if the bits after the look-up were 0
  int8_t first = 0;           // the first one's value, if there are two
  uint8_t advance = kSingle;  // of all symbols
  /// Bits of all symbols.
  unsigned total() const { return cut_after(0) - cut; }
};
static_assert(sizeof(AcEntry) == 8);

/// An AC symbol.
struct AcSymbol {
  uint8_t length = 0;   // of the code; 0: not a short code
  uint8_t size = 0;     // bits of the value after it
  uint8_t total = 0;    // length + size
  uint8_t advance = 0;  // see kEndOfBlock
};

constexpr AcSymbol ac_symbol(unsigned length, unsigned symbol) {
  const unsigned size = symbol & 15, run = symbol >> 4;
  const unsigned advance = size == 0 && run != 15 ? kEndOfBlock : run + 1;
  return {static_cast<uint8_t>(length), static_cast<uint8_t>(size), static_cast<uint8_t>(length + size),
          static_cast<uint8_t>(advance)};
}

struct AcTable {
  AcTable() { build({}); }  // no codes: every symbol is invalid
  HuffmanSpec spec;
  /// For blocks that are decoded.
  std::array<AcEntry, 1 << kLookupBits> decode;
  /// All symbols whose codes are in the look-up, for blocks that are skipped:
  /// cut_after(total length) | advance << kSkipAdvance.
  std::array<uint32_t, 1 << kLookupBits> skip{};
  /// The next symbol, for cases that the entries above do not cover.
  std::array<AcSymbol, 1 << kLookupBits> symbols{};
  LongCodes long_codes;
  void build(const HuffmanSpec& from);
};

}  // namespace headrace
