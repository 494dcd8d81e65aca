// Scans of which nothing is known have, decoded in pieces side by side, the coefficients, the verdicts and the entry
// points of scans that are decoded one MCU after the other.
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

int jobs = 0;

/// Lanes that decode scans of any length in pieces; their jobs are counted. Null: this processor has none.
const RowLanes* lanes() {
  static const RowLanes counted = [] {
    RowLanes made = kAvx512RowLanes;
    made.least = 1;
    made.decode_pieces = [](PieceJob* job) {
      ++jobs;
      kAvx512RowLanes.decode_pieces(job);
    };
    return made;
  }();
  return kernels_named("avx512") != nullptr && __builtin_cpu_supports("avx512vbmi2") ? &counted : nullptr;
}

/// What a decode has learned of the file with this key.
std::vector<EntryPoint> learned(HuffmanDecoder& decoder, EntryPoints& points, uint64_t key) {
  decoder.keep_learned_entries();
  std::vector<EntryPoint> list;
  points.find(key, &list);
  return list;
}

/// A decode that ends in the row after the last one that was known decodes it with these, and does not learn its end.
void require_same(const std::vector<EntryPoint>& one, const std::vector<EntryPoint>& other, bool some_were_known) {
  REQUIRE(one.size() <= other.size());
  REQUIRE(one.size() + (some_were_known ? 1 : 0) >= other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    REQUIRE(one[i].bit == other[i].bit);
    REQUIRE(one[i].dc == other[i].dc);
  }
}

}  // namespace

TEST_CASE("pieces have the coefficients and the entry points of one MCU after the other, whatever the tables are") {
  if (lanes() == nullptr) return;
  jobs = 0;
  Random random(1);
  HuffmanDecoder ours, serial;
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    Coded coded;
    code_image(random, 0, &coded, kTall);
    EntryPoints points(kEnough), same(kEnough);
    for (int crop = 0; crop < 3; ++crop) {  // what is known grows
      CAPTURE(crop);
      random_columns(random, &coded.scan);
      const Rows wanted = random_rows(random);
      coded.scan.entries = i % 3 == 0 ? nullptr : &points;
      const auto found = decode(ours, coded.scan, wanted, lanes());
      const auto list = learned(ours, points, 0);
      coded.scan.entries = i % 3 == 0 ? nullptr : &same;
      REQUIRE(found == decode(serial, coded.scan, wanted, nullptr));
      require_same(list, learned(serial, same, 0), crop > 0);
    }
  }
  CHECK(jobs > 60);
}

TEST_CASE("damaged scans have the verdicts and the coefficients of one MCU after the other") {
  if (lanes() == nullptr) return;
  jobs = 0;
  Random random(2);
  HuffmanDecoder ours, serial;
  int bad = 0;
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    Coded coded;
    code_image(random, 0, &coded, kTall, i % 2 == 0);
    change_bytes(random, &coded);
    if (i % 4 == 0) coded.bytes.resize(static_cast<size_t>(draw(random, 1, static_cast<int>(coded.bytes.size()))));
    coded.scan.data = coded.bytes;
    random_columns(random, &coded.scan);
    const Rows wanted = random_rows(random);
    const auto expected = decode(serial, coded.scan, wanted, nullptr);
    REQUIRE(decode(ours, coded.scan, wanted, lanes()) == expected);
    bad += !expected;
  }
  CHECK(bad > 20);
  CHECK(jobs > 200);
}

TEST_CASE("damaged scans of few rows, where most bits begin no code, have the verdicts of one MCU after the other") {
  if (lanes() == nullptr) return;
  HuffmanDecoder ours, serial;
  int bad = 0;
  // With the first two a piece ended before bits that are no code, and the next pass began after them.
  for (unsigned i = 0; i < 300; ++i) {
    CAPTURE(i);
    Random random(i == 0 ? 1011834 : i == 1 ? 5024233 : i);
    Coded coded;
    const int rows = draw(random, 1, 3);
    code_image(random, 0, &coded, rows, true);
    const int changes = draw(random, 1, 4);
    for (int j = 0; j < changes; ++j) {
      const size_t at = static_cast<size_t>(draw(random, 1, static_cast<int>(coded.bytes.size()) - 1));
      if (coded.bytes[at] == 0xFF || coded.bytes[at - 1] == 0xFF) continue;
      coded.bytes[at] = draw(random, 0, 2) != 0 ? static_cast<uint8_t>(draw(random, 0, 254)) : uint8_t{0xFE};
    }
    Rows wanted;
    wanted.last = draw(random, 0, rows - 1);
    wanted.first = draw(random, 0, wanted.last);
    coded.scan.data = coded.bytes;
    const auto expected = decode(serial, coded.scan, wanted, nullptr);
    REQUIRE(decode(ours, coded.scan, wanted, lanes()) == expected);
    bad += !expected;
  }
  CHECK(bad > 100);
}

TEST_CASE("damaged images of usual sizes have the pixels and the verdicts of one MCU after the other") {
  if (lanes() == nullptr) return;
  Random random(4);
  JpegDecoder serial(&kScalarBlocks);
  int refused = 0, decoded = 0;
  for (const Sampling& sampling : kSamplings) {
    const std::vector<uint8_t> jpeg =
        make_jpeg({.width = 420, .height = 380, .h = sampling.h, .v = sampling.v, .quality = 96});
    for (int i = 0; i < 8; ++i) {
      std::vector<uint8_t> damaged = jpeg;
      const JpegHeader header = parse_jpeg_header(jpeg);
      // From one byte to nearly all: what is no code at all, or codes of many more blocks than there are.
      const int changes = i % 4 == 0 ? 60000 : draw(random, 1, 3), most = i % 4 == 0 ? draw(random, 1, 254) : 254;
      for (int j = 0; j < changes; ++j) {
        const size_t at = static_cast<size_t>(
            draw(random, static_cast<int>(header.scan_begin) + 1, static_cast<int>(header.scan_end) - 2));
        if (jpeg[at - 1] != 0xFF && jpeg[at] != 0xFF && jpeg[at + 1] != 0xFF)
          damaged[at] = static_cast<uint8_t>(draw(random, 0, most));
      }
      Box box = whole_image(header.size);
      if (i % 2 != 0) box = {draw(random, 0, 300), draw(random, 0, 300), draw(random, 1, 100), draw(random, 1, 80)};
      const auto pixels = [&](JpegDecoder& decoder) -> std::optional<std::vector<uint8_t>> {
        BoxSink sink(box.width);
        try {
          decoder.decode(damaged, header, box, sink);
        } catch (const NeedsPillow&) {
          return {};
        }
        return sink.pixels;
      };
      const auto expected = pixels(serial);
      ++(expected ? decoded : refused);
      for (const BlockLoops* loops : block_sets()) {
        JpegDecoder ours(loops);
        CHECK(pixels(ours) == expected);
        CHECK(pixels(ours) == expected);  // the first one leaves no traces
      }
    }
  }
  CHECK(refused > 10);
  CHECK(decoded > 10);
}

TEST_CASE("boxes of images larger than the lanes' memory are the same in pieces, with flat parts and without") {
  if (lanes() == nullptr) return;
  Random random(3);
  JpegDecoder serial(&kScalarBlocks);
  for (const int quality : {20, 95}) {
    const std::vector<uint8_t> jpeg = make_jpeg({.width = 1100, .height = 900, .quality = quality});
    const JpegHeader header = parse_jpeg_header(jpeg);
    for (const BlockLoops* loops : block_sets()) {
      JpegDecoder ours(loops);
      for (int i = 0; i < 2; ++i) {
        Box box{draw(random, 0, 500), draw(random, 0, 400), draw(random, 1, 500), draw(random, 1, 400)};
        if (i == 0) box = whole_image(header.size);
        BoxSink one(box.width), other(box.width);
        ours.decode(jpeg, header, box, one);
        serial.decode(jpeg, header, box, other);
        CHECK(one.pixels == other.pixels);
      }
    }
  }
}

#endif
