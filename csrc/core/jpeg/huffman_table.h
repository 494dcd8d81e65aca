// Look-up tables for Huffman codes of JPEG: from the next bits to one or two decoded symbols.
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

/// Finds codes that are too long for an entry, by their length. Codes of one length are consecutive numbers.
class LongCodes {
 public:
  void build(const HuffmanSpec& spec);
  /// The symbol whose code begins `bits` (left-aligned), if the code is longer than kLookupBits; sets *length to the
  /// code's. -1: there is none.
  int find(uint64_t bits, int* length) const;

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
/// In AcTable::pair: the entry is no pair; decode one symbol by its length and size (length 0: a long code).
inline constexpr unsigned kSingle = 512;
/// In AcTable::skip: the advance of an end of block, added to that of the coefficients before it.
inline constexpr unsigned kSkipEnd = 192;
/// In AcTable::skip: decode one symbol with `pair`.
inline constexpr unsigned kSkipSingle = 128;
/// Most bits that an entry consumes: two entries and the next look-up fit into one refill, 2 * 22 + 10 < 56.
inline constexpr unsigned kMaxEntryBits = 22;

struct AcTable {
  AcTable() { build({}); }  // no codes: every symbol is invalid
  HuffmanSpec spec;
  /// The next symbol, and the one after it if its code and its value lie in the look-up:
  /// total length | advance of the first << 8 | (63 - its size) << 16 | its code length << 24 | value of the second <<
  /// 32 | advance of both << 48.
  std::array<uint64_t, 1 << kLookupBits> pair{};
  /// All symbols whose codes lie in the look-up, for blocks that are skipped: total length | advance << 6.
  std::array<uint16_t, 1 << kLookupBits> skip{};
  LongCodes long_codes;
  void build(const HuffmanSpec& from);
};

}  // namespace headrace
