// A rewritten JPEG has the pixels of its source and a restart marker a row of MCUs; what cannot be rewritten is
// refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/jpeg/sequential/jpeg_header.h"
#include "core/jpeg/transcode/pack_jpeg.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

std::string refusal(const Bytes& jpeg) {
  try {
    pack_jpeg(jpeg, true);
  } catch (const NeedsPillow& e) {
    return e.what();
  }
  return "";
}

bool has_segment(const Bytes& jpeg, int marker) {
  for (size_t at = 2; at + 4 <= jpeg.size() && jpeg[at + 1] != 0xDA;) {
    if (jpeg[at + 1] == marker) return true;
    at += 2 + static_cast<size_t>(jpeg[at + 2] << 8 | jpeg[at + 3]);
  }
  return false;
}

}  // namespace

TEST_CASE("pixels stay, for every sampling, coding and size") {
  const Size sizes[] = {{37, 29}, {16, 16}, {3, 41}, {50, 2}, {1, 1}, {65, 170}};
  for (const Sampling& sampling : kSamplings)
    for (const Size size : sizes)
      for (const int kind : {0, 1, 2, 3, 4}) {
        CAPTURE(sampling.h);
        CAPTURE(size.width);
        CAPTURE(kind);
        JpegOptions options{.width = size.width, .height = size.height, .h = sampling.h, .v = sampling.v};
        options.progressive = kind == 1;
        options.interleaved = kind != 2;
        options.components = kind == 3 ? 1 : 3;
        options.rgb = kind == 4;
        const Bytes jpeg = make_jpeg(options);
        const Bytes packed = pack_jpeg(jpeg, true);
        CHECK(decode_whole(packed) == decode_whole(jpeg));
        const JpegHeader header = parse_jpeg_header(packed);
        CHECK(header.frame == 0xC0);
        CHECK(header.scans == 1);
        const int widest = kind == 3 ? 1 : *std::max_element(sampling.h.begin(), sampling.h.end());
        CHECK(header.restart_interval == (size.width + 8 * widest - 1) / (8 * widest));
        CHECK(pack_jpeg(packed, true) == packed);
      }
}

TEST_CASE("metadata stay, or only what concerns the pixels") {
  const Bytes jpeg = with_segment(with_segment(make_jpeg({}), 0xFE, "a comment"), 0xED, "nothing known");
  Bytes more = jpeg;
  more.insert(more.end(), {'m', 'o', 'r', 'e'});
  const Bytes all = pack_jpeg(more, true), shown = pack_jpeg(more, false);
  for (const int marker : {0xE0, 0xFE, 0xED}) CHECK(has_segment(all, marker));
  CHECK(std::equal(more.end() - 4, more.end(), all.end() - 4));
  CHECK(has_segment(shown, 0xE0));
  CHECK_FALSE(has_segment(shown, 0xFE));
  CHECK_FALSE(has_segment(shown, 0xED));
  CHECK(shown[shown.size() - 1] == 0xD9);
}

TEST_CASE("what cannot be rewritten is refused with the reason") {
  CHECK(refusal({}) == "not a JPEG");
  CHECK(refusal(make_jpeg({.components = 4})) == "CMYK or YCCK");
  const std::string pictures(
      "MPF\0II*\0\x08\0\0\0\x02\0"
      "\x01\xB0\x04\0\x01\0\0\0\x01\0\0\0"
      "\x02\xB0\x07\0\x10\0\0\0\x26\0\0\0"
      "\0\0\0\0",
      42);
  CHECK(refusal(with_segment(make_jpeg({}), 0xE2, pictures + std::string(16, '\0'))).find("MPF") != std::string::npos);
}

TEST_CASE("damage is refused, or the file is rewritten as libjpeg reads it") {
  for (const bool progressive : {false, true}) {
    const Bytes good = make_jpeg({.width = 64, .height = 64, .progressive = progressive});
    const size_t begin = parse_jpeg_header(good).scan_begin;
    int refused = 0;
    for (size_t at = 2; at < good.size(); at += at < begin ? 1 : 5) {
      Bytes bad = good;
      bad[at] ^= 0x35;
      try {
        const Bytes packed = pack_jpeg(bad, true);
        CHECK(decode_whole(packed) == decode_whole(bad));
      } catch (const NeedsPillow& e) {
        CHECK(std::string(e.what()).size() > 4);
        ++refused;
      }
    }
    CHECK(refused > 100);
    for (size_t size = 0; size < good.size(); size += 13)
      CHECK_FALSE(refusal(Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size))).empty());
  }
}
