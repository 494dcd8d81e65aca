// Scans with random tables and coefficients, coded by the standard's rules.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "core/jpeg/sequential/huffman.h"

namespace headrace::test {

using Block = std::array<int16_t, 64>;  // here in zigzag order
using Random = std::mt19937;

inline int draw(Random& random, int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }

/// A code for `symbols` with random lengths: short ones, long ones, gaps.
inline HuffmanSpec random_spec(Random& random, std::vector<uint8_t> symbols) {
  std::shuffle(symbols.begin(), symbols.end(), random);
  HuffmanSpec spec;
  std::copy(symbols.begin(), symbols.end(), spec.symbols.begin());
  int left = static_cast<int>(symbols.size()), free_codes = 1;  // of the current length; one stays free: all ones
  for (size_t length = 1; length <= 16; ++length) {
    free_codes *= 2;
    int most = std::min(left, free_codes - 1);
    // Enough codes must stay free for the remaining symbols at greater lengths.
    while (most > 0 && ((free_codes - most) << (16 - length)) - 1 < left - most) --most;
    const int count = length == 16 ? left : draw(random, 0, most);
    spec.lengths[length] = static_cast<uint8_t>(count);
    free_codes -= count;
    left -= count;
  }
  return spec;
}

/// Makes all codes as long as the longest or longer, 8 bits at least, so that most bits begin none.
inline void add_holes(HuffmanSpec* spec) {
  int codes = 0;
  for (uint8_t& count : spec->lengths) codes += std::exchange(count, uint8_t{0});
  spec->lengths[8] = static_cast<uint8_t>(codes);
}

inline std::vector<uint8_t> dc_symbols() { return {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; }

inline std::vector<uint8_t> ac_symbols() {
  std::vector<uint8_t> symbols = {0x00, 0xF0};
  for (int run = 0; run < 16; ++run)
    for (int size = 1; size <= 10; ++size) symbols.push_back(static_cast<uint8_t>(run << 4 | size));
  return symbols;
}

class Writer {
 public:
  void put(const HuffmanSpec& spec, int symbol, int value, int size) {
    uint32_t code = 0;
    size_t index = 0;
    for (size_t length = 1; length <= 16; ++length, code <<= 1)
      for (int i = 0; i < spec.lengths[length]; ++i, ++code, ++index)
        if (spec.symbols[index] == symbol) {
          put_bits(code, static_cast<int>(length));
          put_bits(static_cast<uint32_t>(value < 0 ? value + (1 << size) - 1 : value), size);
          return;
        }
    FAIL("no such symbol");
  }
  void restart() {
    flush();
    bytes.insert(bytes.end(), {0xFF, static_cast<uint8_t>(0xD0 + restarts_++ % 8)});
  }
  void flush() {  // with ones, as the standard requires
    while (count_ != 0) put_bits(1, 1);
  }
  std::vector<uint8_t> bytes;

 private:
  void put_bits(uint32_t bits, int count) {
    while (count-- > 0) {
      byte_ = byte_ << 1 | (bits >> count & 1);
      if (++count_ < 8) continue;
      bytes.push_back(static_cast<uint8_t>(byte_));
      if ((byte_ & 255) == 0xFF) bytes.push_back(0);
      byte_ = 0;
      count_ = 0;
    }
  }
  uint32_t byte_ = 0;
  int count_ = 0, restarts_ = 0;
};

inline int size_of(int value) {
  int size = 0;
  for (value = std::abs(value); value != 0; value >>= 1) ++size;
  return size;
}

inline void put_block(Writer& writer, const HuffmanSpec& dc, const HuffmanSpec& ac, const Block& block, int last_dc) {
  const int difference = block[0] - last_dc;
  writer.put(dc, size_of(difference), difference, size_of(difference));
  int run = 0;
  for (size_t k = 1; k < 64; ++k) {
    if (block[k] == 0) {
      ++run;
      continue;
    }
    for (; run > 15; run -= 16) writer.put(ac, 0xF0, 0, 0);
    writer.put(ac, run << 4 | size_of(block[k]), block[k], size_of(block[k]));
    run = 0;
  }
  if (run > 0) writer.put(ac, 0x00, 0, 0);
}

inline Block random_block(Random& random) {
  Block block{};
  block[0] = static_cast<int16_t>(draw(random, -1000, 1000));
  const int kind = draw(random, 0, 4);  // empty, sparse, usual, dense, full
  const int share = std::array{0, 3, 20, 70, 100}[static_cast<size_t>(kind)], bits = draw(random, 1, 10);
  for (size_t k = 1; k < 64; ++k)
    if (draw(random, 1, 100) <= share) block[k] = static_cast<int16_t>(draw(random, -(1 << bits) + 1, (1 << bits) - 1));
  if (draw(random, 0, 3) == 0) block[63] = 1;  // no end-of-block code then
  return block;
}

struct Coded {
  std::vector<Block> blocks;
  std::vector<uint8_t> bytes;
  HuffmanSpec dc[2], ac[2];
  HuffmanScan scan;  // points into the above
};

inline constexpr int kColumns = 7, kRows = 5, kBlocks = 4;

/// An image of 7 x `rows` MCUs: two blocks of one component, one each of two others, as with 4:2:2. `holes`: in the
/// tables of DC values, so that damaged ones are often no codes.
inline void code_image(Random& random, int restart_interval, Coded* coded, int rows = kRows, bool holes = false) {
  for (int i = 0; i < 2; ++i) {
    coded->dc[i] = random_spec(random, dc_symbols());
    coded->ac[i] = random_spec(random, ac_symbols());
    if (holes) add_holes(&coded->dc[i]);
  }
  HuffmanScan& scan = coded->scan;
  const HuffmanScan::McuBlock kinds[kBlocks] = {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {2, 1, 1}};
  std::copy(std::begin(kinds), std::end(kinds), scan.block);
  Writer writer;
  int last_dc[3] = {};
  for (int mcu = 0; mcu < kColumns * rows; ++mcu) {
    if (restart_interval != 0 && mcu != 0 && mcu % restart_interval == 0) {
      writer.restart();
      std::fill(std::begin(last_dc), std::end(last_dc), 0);
    }
    for (const HuffmanScan::McuBlock& kind : kinds) {
      const Block block = random_block(random);
      put_block(writer, coded->dc[kind.dc_table], coded->ac[kind.ac_table], block, last_dc[kind.component]);
      last_dc[kind.component] = block[0];
      coded->blocks.push_back(block);
    }
  }
  writer.flush();
  coded->bytes = writer.bytes;
  scan.data = coded->bytes;
  scan.blocks = kBlocks;
  for (int i = 0; i < 2; ++i) {
    scan.dc[i] = &coded->dc[i];
    scan.ac[i] = &coded->ac[i];
  }
  scan.mcus_per_row = kColumns;
  scan.mcu_rows = rows;
  scan.last_column = kColumns - 1;
  scan.restart_interval = restart_interval;
}

inline size_t natural_place(size_t k) {
  size_t n = 0;
  for (size_t diagonal = 0; diagonal < 15; ++diagonal)
    for (size_t i = 0; i <= diagonal; ++i) {
      const size_t row = diagonal % 2 != 0 ? i : diagonal - i, column = diagonal - row;
      if (row < 8 && column < 8 && n++ == k) return row * 8 + column;
    }
  return 64;
}

}  // namespace headrace::test
