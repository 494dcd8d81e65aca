// Rows that are decoded side by side have the coefficients and the verdicts of rows that are decoded one by one.
#include <doctest/doctest.h>

#include <optional>

#include "core/base/error.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/kernels/resize/kernels.h"
#include "huffman/scan_parts.h"
#include "support/block_sets.h"
#include "support/jpeg_samples.h"

#if defined(__x86_64__) || defined(_M_X64)

using namespace headrace;
using namespace headrace::test;

namespace {

int done = 0, refused = 0;  // by the lanes

/// The lanes that this processor has, with however few rows; their jobs are counted.
template <const RowLanes& kOriginal>
const RowLanes& counted() {
  static const RowLanes lanes = [] {
    RowLanes made = kOriginal;
    made.least = 1;
    made.decode = [](const LaneJob& job) {
      const bool fine = kOriginal.decode(job);
      ++(fine ? done : refused);
      return fine;
    };
    return made;
  }();
  return lanes;
}

std::vector<const RowLanes*> all_lanes() {
  std::vector<const RowLanes*> all;
  if (kernels_named("avx512") != nullptr && __builtin_cpu_supports("avx512vbmi2"))
    all.push_back(&counted<kAvx512RowLanes>());
  return all;
}

void require_coded(const std::optional<std::vector<int16_t>>& found, const Coded& coded, Rows rows) {
  REQUIRE(found.has_value());
  size_t at = 0;
  for (int mcu = rows.first * kColumns; mcu < (rows.last + 1) * kColumns && rows.most > 0; ++mcu, --rows.most) {
    const int column = mcu % kColumns;
    if (column < coded.scan.first_column || column > coded.scan.last_column) continue;
    for (size_t b = 0; b < kBlocks; ++b, at += 64)
      for (size_t k = 0; k < 64; ++k)
        REQUIRE((*found)[at + natural_place(k)] == coded.blocks[static_cast<size_t>(mcu) * kBlocks + b][k]);
  }
  REQUIRE(at == found->size());
}

}  // namespace

TEST_CASE("rows between restart markers have the coefficients that were coded, whatever the tables and the window") {
  for (const RowLanes* lanes : all_lanes()) {
    done = refused = 0;
    Random random(1);
    HuffmanDecoder decoder;
    for (int i = 0; i < 120; ++i) {
      CAPTURE(i);
      Coded coded;
      code_image(random, kColumns, &coded, kTall);
      random_columns(random, &coded.scan);
      const Rows rows = random_rows(random);
      require_coded(decode(decoder, coded.scan, rows, lanes), coded, rows);
    }
    CHECK(done > 90);
    CHECK(refused == 0);
  }
}

TEST_CASE("rows at entry points have the coefficients that were coded") {
  for (const RowLanes* lanes : all_lanes()) {
    done = refused = 0;
    Random random(2);
    HuffmanDecoder decoder;
    EntryPoints points(kEnough);
    for (int i = 0; i < 60; ++i) {
      CAPTURE(i);
      Coded coded;
      code_image(random, 0, &coded, kTall);
      coded.scan.entries = &points;
      coded.scan.key = static_cast<uint64_t>(i);
      for (int crop = 0; crop < 4; ++crop) {  // what is known grows
        random_columns(random, &coded.scan);
        const Rows rows = random_rows(random);
        require_coded(decode(decoder, coded.scan, rows, lanes), coded, rows);
        decoder.keep_learned_entries();
      }
    }
    CHECK(done > 60);
    CHECK(refused == 0);
  }
}

TEST_CASE("damaged rows have the coefficients and the verdicts of rows that are decoded one by one") {
  for (const RowLanes* lanes : all_lanes()) {
    done = refused = 0;
    Random random(3);
    HuffmanDecoder ours, serial;
    int bad = 0;
    for (int i = 0; i < 400; ++i) {
      CAPTURE(i);
      Coded coded;
      code_image(random, kColumns, &coded, kTall);
      change_bytes(random, &coded);
      if (i % 8 == 0) coded.bytes.resize(static_cast<size_t>(draw(random, 1, static_cast<int>(coded.bytes.size()))));
      coded.scan.data = coded.bytes;
      random_columns(random, &coded.scan);
      const Rows rows = random_rows(random);
      const auto expected = decode(serial, coded.scan, rows, nullptr);
      REQUIRE(decode(ours, coded.scan, rows, lanes) == expected);
      bad += !expected;
    }
    CHECK(bad > 50);
    CHECK(refused > bad / 2);
    CHECK(done > 50);
  }
}

TEST_CASE("rows at wrong entry points have the coefficients and the verdicts of rows that are decoded one by one") {
  for (const RowLanes* lanes : all_lanes()) {
    done = refused = 0;
    Random random(4);
    HuffmanDecoder ours, serial;
    int bad = 0;
    for (int i = 0; i < 400; ++i) {
      CAPTURE(i);
      Coded coded;
      code_image(random, 0, &coded, kTall);
      std::vector<EntryPoint> right, list;
      {
        EntryPoints points(kEnough);
        coded.scan.entries = &points;
        (void)decode(serial, coded.scan, {}, nullptr);
        serial.keep_learned_entries();
        points.find(0, &right);
      }
      list = right;
      const int changes = draw(random, 1, 4);
      for (int j = 0; j < changes; ++j) {
        EntryPoint& one = list[static_cast<size_t>(draw(random, 0, static_cast<int>(list.size()) - 1))];
        const int kind = draw(random, 0, 3);
        if (kind == 0) one.bit += static_cast<uint32_t>(draw(random, -3, 3));
        if (kind == 1) one.bit = static_cast<uint32_t>(random());
        if (kind == 2) one.bit = static_cast<uint32_t>(draw(random, 0, static_cast<int>(coded.bytes.size()) * 8));
        if (kind == 3) one.dc[static_cast<size_t>(draw(random, 0, 2))] = static_cast<int16_t>(random());
      }
      EntryPoints false_points(kEnough), same(kEnough);  // what one decoder learns, the other one must not know
      false_points.keep(0, list);
      same.keep(0, list);
      random_columns(random, &coded.scan);
      const Rows rows = random_rows(random);
      coded.scan.entries = &false_points;
      const auto expected = decode(serial, coded.scan, rows, nullptr);
      coded.scan.entries = &same;
      REQUIRE(decode(ours, coded.scan, rows, lanes) == expected);
      bad += !expected;
    }
    CHECK(bad > 50);
    CHECK(done > 100);
  }
}

TEST_CASE("boxes of tall images are the same side by side and one by one, for every sampling") {
  for (const BlockLoops* loops : block_sets()) {
    Random random(5);
    JpegDecoder ours(loops), serial(&kScalarBlocks);
    for (const Sampling& sampling : kSamplings)
      for (const int kind : {0, 1, 2, 3}) {
        const std::vector<uint8_t> jpeg = make_jpeg({.width = 70,
                                                     .height = 410,
                                                     .components = kind == 1 ? 1 : 3,
                                                     .h = sampling.h,
                                                     .v = sampling.v,
                                                     .optimal_tables = kind == 2,
                                                     .restart_rows = kind == 3 ? 1 : 0,
                                                     .quality = kind == 0 ? 100 : 70});
        const JpegHeader header = parse_jpeg_header(jpeg);
        EntryPoints points(kEnough);
        for (int i = 0; i < 8; ++i) {
          Box box;
          box.x = draw(random, 0, 69);
          box.y = draw(random, 0, 409);
          box.width = draw(random, 1, 70 - box.x);
          box.height = draw(random, 1, 410 - box.y);
          if (i == 0) box = {0, 0, 69, 410};
          BoxSink one(box.width), other(box.width);
          ours.decode(jpeg, header, box, one, &points);
          serial.decode(jpeg, header, box, other);
          CHECK(one.pixels == other.pixels);
        }
      }
  }
}

TEST_CASE("images so wide that some rows at a time are decoded ahead are the same, with restart markers and without") {
  JpegDecoder serial(&kScalarBlocks);
  for (const int restart_rows : {0, 1}) {
    const std::vector<uint8_t> jpeg = make_jpeg(
        {.width = 3300, .height = 700, .h = {2, 1, 1}, .v = {2, 1, 1}, .restart_rows = restart_rows, .quality = 60});
    const JpegHeader header = parse_jpeg_header(jpeg);
    const Box box{8, 40, 3290, 650};
    BoxSink expected(box.width);
    serial.decode(jpeg, header, box, expected);
    for (const BlockLoops* loops : block_sets()) {
      JpegDecoder ours(loops);
      EntryPoints points(kEnough);
      for (int i = 0; i < 2; ++i) {  // the first one learns
        BoxSink found(box.width);
        ours.decode(jpeg, header, box, found, &points);
        CHECK(found.pixels == expected.pixels);
      }
    }
  }
}

#endif
