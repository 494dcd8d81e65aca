// headrace's Huffman loop returns all coefficients as they were coded, and refuses data that is not clearly correct.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <vector>

#include "core/jpeg/sequential/huffman.h"
#include "huffman/coded_image.h"

using namespace headrace;
using namespace headrace::test;

namespace {

/// Decodes all MCUs, those of the first `skipped_rows` without output; false as soon as the decoder refuses.
bool decode(HuffmanDecoder& decoder, const Coded& coded, int skipped_rows, bool compare) {
  decoder.begin(coded.scan);
  for (int mcu = 0; mcu < kColumns * kRows; ++mcu) {
    int16_t blocks[kBlocks][64] = {};
    int16_t(*pointers[kBlocks])[64] = {&blocks[0], &blocks[1], &blocks[2], &blocks[3]};
    if (!decoder.next_mcu(mcu < skipped_rows * kColumns ? nullptr : pointers)) return false;
    const int column = mcu % kColumns;
    if (mcu < skipped_rows * kColumns || column < coded.scan.first_column || column > coded.scan.last_column) continue;
    for (size_t b = 0; compare && b < kBlocks; ++b)
      for (size_t k = 0; k < 64; ++k)
        if (blocks[b][natural_place(k)] != coded.blocks[static_cast<size_t>(mcu) * kBlocks + b][k]) {
          CAPTURE(mcu);
          CAPTURE(b);
          CAPTURE(k);
          CHECK(blocks[b][natural_place(k)] == coded.blocks[static_cast<size_t>(mcu) * kBlocks + b][k]);
          return false;
        }
  }
  return true;
}

}  // namespace

TEST_CASE("coefficients come back, whatever the tables, the window and the restarts") {
  Random random(1);
  HuffmanDecoder fast;
  setenv("HEADRACE_ISA", "scalar", 1);
  HuffmanDecoder plain;
  unsetenv("HEADRACE_ISA");
  for (int i = 0; i < 60; ++i) {
    Coded coded;
    code_image(random, std::array{0, 1, 3, 7, 35, 40}[static_cast<size_t>(i) % 6], &coded);
    for (HuffmanDecoder* decoder : {&fast, &plain}) {
      CAPTURE(i);
      coded.scan.first_column = 0;
      coded.scan.last_column = kColumns - 1;
      CHECK(decode(*decoder, coded, 0, true));
      coded.scan.first_column = draw(random, 0, kColumns - 1);
      coded.scan.last_column = draw(random, coded.scan.first_column, kColumns - 1);
      CHECK(decode(*decoder, coded, draw(random, 0, kRows), true));
    }
  }
}

TEST_CASE("changed and missing bytes end in a refusal or in other coefficients, never outside the data") {
  Random random(2);
  HuffmanDecoder decoder;
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    Coded coded;
    code_image(random, i % 2 == 0 ? 0 : 3, &coded);
    const int changes = draw(random, 1, 5);
    for (int j = 0; j < changes; ++j) {
      const size_t at = static_cast<size_t>(draw(random, 0, static_cast<int>(coded.bytes.size()) - 1));
      if (coded.bytes[at] == 0xFF || (at > 0 && coded.bytes[at - 1] == 0xFF)) continue;  // markers stay as they are
      coded.bytes[at] = static_cast<uint8_t>(draw(random, 0, 254));
    }
    if (i % 5 == 0) coded.bytes.resize(static_cast<size_t>(draw(random, 0, static_cast<int>(coded.bytes.size()))));
    coded.scan.data = coded.bytes;
    if (!decode(decoder, coded, i % 3, false)) ++refused;
  }
  CHECK(refused > 100);
}

TEST_CASE("segments without a wanted MCU are not read, and damage in them changes nothing") {
  Random random(5);
  HuffmanDecoder decoder;
  for (int i = 0; i < 60; ++i) {
    Coded coded;
    const int interval = std::array{kColumns, 3, 2 * kColumns, 1, 10}[static_cast<size_t>(i) % 5];
    code_image(random, interval, &coded);
    coded.scan.first_column = draw(random, 0, kColumns - 1);
    coded.scan.last_column = draw(random, coded.scan.first_column, kColumns - 1);
    const int rows = draw(random, 0, kRows - 1);
    int segment = 0;
    const auto wanted = [&] {
      for (int mcu = segment * interval; mcu < (segment + 1) * interval && mcu < kColumns * kRows; ++mcu) {
        const int column = mcu % kColumns;
        if (mcu >= rows * kColumns && column >= coded.scan.first_column && column <= coded.scan.last_column)
          return true;
      }
      return false;
    };
    int spoilt = 0;
    for (size_t at = 0; at < coded.bytes.size(); ++at) {
      if (coded.bytes[at] == 0xFF) {
        if (coded.bytes[++at] != 0) ++segment;
      } else if (!wanted()) {
        coded.bytes[at] = 0x5A;
        ++spoilt;
      }
    }
    CAPTURE(i);
    CHECK(decode(decoder, coded, rows, true));
    if (i == 0) CHECK(spoilt > 0);
  }
}

TEST_CASE("a segment that is missing is refused") {
  Random random(6);
  Coded coded;
  code_image(random, kColumns, &coded);
  const auto last = std::find(coded.bytes.rbegin(), coded.bytes.rend(), 0xD0 + kRows - 2);
  coded.bytes.erase(last.base() - 2, coded.bytes.end());
  coded.scan.data = coded.bytes;
  HuffmanDecoder decoder;
  CHECK_FALSE(decode(decoder, coded, kRows - 1, false));
  CHECK_FALSE(decode(decoder, coded, 0, false));
}

TEST_CASE("a segment so long that libjpeg may stop in it is read") {
  constexpr int kMcus = 6600, kTooMany = 10;  // blocks in an MCU: 66,000 in a segment
  HuffmanSpec dc, ac;
  dc.lengths[1] = ac.lengths[1] = 1;  // "0": no difference, end of block
  for (const int blocks : {kTooMany - 1, kTooMany}) {
    Writer writer;
    for (int row = 0; row < 2; ++row) {
      if (row == 1) writer.restart();
      for (int i = 0; i < kMcus * blocks; ++i) {
        writer.put(dc, 0, 0, 0);
        writer.put(ac, 0, 0, 0);
      }
    }
    writer.flush();
    std::vector<uint8_t> bytes = writer.bytes;
    bytes[0] = 0x80;  // no code
    HuffmanScan scan;
    scan.data = bytes;
    scan.blocks = blocks;
    scan.dc[0] = &dc;
    scan.ac[0] = &ac;
    scan.mcus_per_row = scan.restart_interval = kMcus;
    scan.last_column = 0;
    HuffmanDecoder decoder;
    decoder.begin(scan);
    for (int i = 0; i < kMcus; ++i) decoder.next_mcu(nullptr);
    int16_t coefficients[kTooMany][64] = {};
    int16_t(*pointers[kTooMany])[64];
    for (int i = 0; i < kTooMany; ++i) pointers[i] = &coefficients[i];
    CHECK(decoder.next_mcu(pointers) == (blocks < kTooMany));
  }
}

TEST_CASE("bytes left over before a restart are refused, as libjpeg warns of them") {
  Random random(3);
  Coded coded;
  code_image(random, 7, &coded);
  size_t at = 0;
  while (!(coded.bytes[at] == 0xFF && coded.bytes[at + 1] == 0xD0)) ++at;
  coded.bytes.insert(coded.bytes.begin() + static_cast<ptrdiff_t>(at), 0x55);
  coded.scan.data = coded.bytes;
  HuffmanDecoder decoder;
  CHECK_FALSE(decode(decoder, coded, 0, false));
}

TEST_CASE("a run past the end of a block is refused") {
  Random random(4);
  Coded coded;
  code_image(random, 0, &coded);
  Writer writer;
  writer.put(coded.dc[0], 0, 0, 0);
  for (int i = 0; i < 3; ++i) writer.put(coded.ac[0], 0xF0, 0, 0);
  writer.put(coded.ac[0], 0xF1, 1, 1);  // 1 + 3 * 16 + 16 = 65 coefficients
  for (int i = 0; i < 100; ++i) writer.put(coded.ac[0], 0x00, 0, 0);
  writer.flush();
  coded.bytes = writer.bytes;
  coded.scan.data = coded.bytes;
  HuffmanDecoder decoder;
  CHECK_FALSE(decode(decoder, coded, 0, false));
  CHECK_FALSE(decode(decoder, coded, 1, false));
}

TEST_CASE("a decoder without tables refuses everything") {
  const Block zeros{};
  HuffmanSpec empty;
  HuffmanScan scan;
  const std::vector<uint8_t> bytes(100, 0);
  scan.data = bytes;
  scan.blocks = scan.mcus_per_row = 1;
  scan.dc[0] = scan.ac[0] = &empty;
  HuffmanDecoder decoder;
  decoder.begin(scan);
  Block block = zeros;
  int16_t(*pointer)[64] = reinterpret_cast<int16_t(*)[64]>(block.data());
  CHECK_FALSE(decoder.next_mcu(&pointer));
}
