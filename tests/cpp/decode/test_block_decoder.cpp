// Our own way from coefficients to pixels: the bytes of libjpeg-turbo, and its verdict on damaged files.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "support/block_sets.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;
using Random = std::mt19937;

namespace {

int draw(Random& random, int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }

Box random_box(Random& random, int width, int height) {
  Box box;
  box.x = draw(random, 0, width - 1);
  box.y = draw(random, 0, height - 1);
  const int most = draw(random, 0, 1) == 0 ? 17 : 65535;
  box.width = draw(random, 1, std::min(most, width - box.x));
  box.height = draw(random, 1, std::min(most, height - box.y));
  return box;
}

/// The pixels, or none where the decoder leaves the file to Pillow.
Bytes verdict(const BlockLoops* loops, const Bytes& jpeg, const JpegHeader& header, Box box) {
  try {
    return decode_box(loops, jpeg, header, box);
  } catch (const NeedsPillow&) {
    return {};
  }
}

std::vector<JpegOptions> kinds() {
  std::vector<JpegOptions> all;
  for (const Sampling& sampling : kSamplings) all.push_back({.h = sampling.h, .v = sampling.v});
  for (const int v : {1, 2}) all.push_back({.components = 1, .h = {v, 1, 1}, .v = {v, 1, 1}});
  all.push_back({.rgb = true});
  return all;
}

}  // namespace

TEST_CASE("boxes in images of several rows and chunks of MCUs, whatever the sampling") {
  Random random(1);
  for (JpegOptions options : kinds())
    for (const Size size : {Size{301, 67}, Size{274, 96}, Size{130, 33}, Size{5, 70}}) {
      options.width = size.width;
      options.height = size.height;
      options.restart_rows = draw(random, 0, 1);
      options.quality = draw(random, 1, 100);
      const Bytes jpeg = make_jpeg(options);
      const JpegHeader header = parse_jpeg_header(jpeg);
      const Bytes whole = decode_whole(jpeg);
      for (const BlockLoops* set : block_sets())
        for (int i = 0; i < 30; ++i) {
          const Box box = i == 0 ? whole_image(size) : random_box(random, size.width, size.height);
          CAPTURE(set->name);
          CAPTURE(options.h);
          CAPTURE(options.v);
          CAPTURE(box.x);
          CAPTURE(box.y);
          CAPTURE(box.width);
          CAPTURE(box.height);
          REQUIRE(decode_box(set, jpeg, header, box) == part_of(whole, size.width, box));
        }
    }
}

// Damage is seen where it is read. The two ways differ by a row or a column of MCUs in what they read beside a box.
TEST_CASE("damage is left to Pillow, or is outside the box and changes no pixel, wherever it is") {
  Random random(2);
  int refused = 0, decoded = 0, apart = 0;
  for (JpegOptions options : kinds()) {
    options.width = 70;
    options.height = 75;
    options.restart_rows = 1;
    const Bytes good = make_jpeg(options);
    const JpegHeader whole = parse_jpeg_header(good);
    for (size_t at = whole.scan_begin; at < whole.scan_end; at += 19) {
      Bytes bad = good;
      bad[at] ^= 0x35;
      const JpegHeader header = parse_jpeg_header(bad);
      if (header.not_plain != nullptr) continue;
      const Box box = random_box(random, options.width, options.height);
      const Bytes of_library = verdict(nullptr, bad, header, box);
      CAPTURE(options.h);
      CAPTURE(options.v);
      CAPTURE(box.y);
      CAPTURE(box.height);
      const Bytes given = verdict(block_sets().back(), bad, header, box);
      if (!given.empty()) REQUIRE(given == part_of(decode_whole(bad), options.width, box));  // which conceals damage
      apart += given.empty() != of_library.empty();
      ++(given.empty() ? refused : decoded);
    }
  }
  CHECK(apart < (refused + decoded) / 50);
  CHECK(refused > 100);
  CHECK(decoded > 200);
}

TEST_CASE("a file that is left to Pillow leaves no state for the next") {
  const Bytes good = make_jpeg({.width = 64, .height = 64, .restart_rows = 1, .quality = 30});
  const JpegHeader header = parse_jpeg_header(good);
  const Bytes whole = decode_whole(good);
  for (const BlockLoops* set : block_sets()) {
    JpegDecoder decoder(set);
    for (size_t at = header.scan_begin; at < header.scan_end; at += 5) {
      Bytes bad = good;
      bad[at] ^= 0x5A;
      const JpegHeader now = parse_jpeg_header(bad);
      if (now.not_plain != nullptr) continue;
      BoxSink ignored;
      try {
        decoder.decode(bad, now, {0, 0, 64, 64}, ignored);
      } catch (const NeedsPillow&) {
      }
      BoxSink sink{64};
      decoder.decode(good, header, {0, 0, 64, 64}, sink);
      REQUIRE(sink.pixels == whole);
    }
  }
}
