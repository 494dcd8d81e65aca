// Damaged progressive scans: refused, or libjpeg's coefficients and pixels; and no state is left for the next.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/jpeg/sequential/jpeg_session.h"
#include "progressive/progressive_check.h"
#include "progressive/progressive_samples.h"
#include "support/block_sets.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;
using Random = std::minstd_rand;

namespace {

int draw(Random& random, int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }

/// With some bytes changed, markers and stuffing apart.
Bytes damaged(Random& random, const Bytes& good, size_t from) {
  Bytes bad = good;
  for (int changes = draw(random, 1, 3); changes > 0; --changes) {
    const size_t at = static_cast<size_t>(draw(random, static_cast<int>(from), static_cast<int>(bad.size()) - 3));
    if (bad[at] != 0xFF && bad[at - 1] != 0xFF) bad[at] = static_cast<uint8_t>(draw(random, 0, 254));
  }
  return bad;
}

void put_segment(Bytes& to, int marker, const Bytes& body) {
  const size_t length = body.size() + 2;
  to.insert(to.end(), {0xFF, static_cast<uint8_t>(marker), static_cast<uint8_t>(length >> 8),
                       static_cast<uint8_t>(length & 255)});
  to.insert(to.end(), body.begin(), body.end());
}

/// A gray file of `across` x `down` blocks, whose DC value grows by 32767 from each block to the next.
Bytes growing(int across, int down) {
  const auto high = [](int edge) { return static_cast<uint8_t>(8 * edge >> 8); };
  const auto low = [](int edge) { return static_cast<uint8_t>(8 * edge & 255); };
  Bytes file = {0xFF, 0xD8};
  Bytes quantisation(65, 1), table(18, 0);
  quantisation[0] = 0;
  put_segment(file, 0xDB, quantisation);
  put_segment(file, 0xC2, {8, high(down), low(down), high(across), low(across), 1, 1, 0x11, 0});
  table[1] = 1;    // one code of one bit, 0
  table[17] = 15;  // a difference of 15 bits
  put_segment(file, 0xC4, table);
  table[0] = 0x10;
  table[17] = 0;  // the end of a block
  put_segment(file, 0xC4, table);
  put_segment(file, 0xDA, {1, 1, 0, 0, 0, 0});
  for (int i = 0; i < across * down; ++i) file.insert(file.end(), {0x7F, 0xFF, 0});
  put_segment(file, 0xDA, {1, 1, 0, 1, 63, 0});
  file.insert(file.end(), static_cast<size_t>(across * down + 7) / 8, 0);
  file.insert(file.end(), {0xFF, 0xD9});
  return file;
}

}  // namespace

TEST_CASE("damage is refused, or libjpeg reads the same coefficients") {
  Random random(1);
  int refused = 0, read = 0;
  for (int i = 0; i < 300; ++i) {
    ProgressiveOptions options{.width = 90, .height = 70, .h = {2, 1, 1}, .v = {2, 1, 1}};
    options.restart_interval = i % 2 == 0 ? 7 : 0;
    const Bytes good = make_progressive(random, options, random_script(random, 3));
    const Bytes bad = damaged(random, good, parse_jpeg_header(good).scan_begin);
    const JpegHeader header = parse_jpeg_header(bad);
    if (header.not_plain != nullptr) continue;
    const Box box{draw(random, 0, 60), draw(random, 0, 50), 20, 15};
    const char* const wrong = check_progressive(bad, header, box);
    CAPTURE(i);
    REQUIRE(std::string(wrong == nullptr ? "" : wrong) == "");
    const McuWindow window{box.y / 16, (box.y + 14) / 16, 0, 5};
    ++(window_of(kPlainScans, bad, header, window).empty() ? refused : read);
  }
  CHECK(refused > 50);
  CHECK(read > 20);
}

TEST_CASE("pixels of damaged files are libjpeg's, and the decoder works on") {
  Random random(2);
  const ProgressiveOptions options{.width = 64, .height = 72, .restart_interval = 4};
  const std::vector<ScanScript> script = {{{0, 1, 2}, 0, 0, 0, 1}, {{0}, 1, 63, 0, 1}, {{1}, 1, 63, 0, 0},
                                          {{2}, 1, 63, 0, 0},      {{0}, 1, 63, 1, 0}, {{0, 1, 2}, 0, 0, 1, 0}};
  const Bytes good = make_progressive(random, options, script);
  const JpegHeader header = parse_jpeg_header(good);
  const Bytes whole = decode_whole(good);
  int refused = 0, read = 0;
  for (const BlockLoops* set : block_sets()) {
    JpegDecoder decoder(set);
    for (int i = 0; i < 150; ++i) {
      const Bytes bad = damaged(random, good, header.scan_begin);
      const JpegHeader now = parse_jpeg_header(bad);
      if (now.not_plain != nullptr) continue;
      BoxSink sink(64);
      try {
        decoder.decode(bad, now, {0, 0, 64, 40}, sink);
        const Bytes concealed = decode_whole(bad);
        REQUIRE(sink.pixels == Bytes(concealed.begin(), concealed.begin() + ptrdiff_t{64} * 40 * kPixelBytes));
        ++read;
      } catch (const NeedsPillow& e) {
        CHECK(std::string(e.what()) == kDamagedHuffman);
        ++refused;
      }
      BoxSink again(64);
      decoder.decode(good, header, {0, 0, 64, 72}, again);
      REQUIRE(again.pixels == whole);
    }
  }
  CHECK(refused > 100);
  CHECK(read > 50);
}

TEST_CASE("a scan that ends too early, or has bytes left over before a restart, is refused") {
  Random random(3);
  const ProgressiveOptions options{.width = 64, .height = 64, .h = {1}, .v = {1}, .restart_interval = 8};
  const Bytes good = make_progressive(random, options, {{{0}, 0, 0, 0, 0}, {{0}, 1, 63, 0, 1}, {{0}, 1, 63, 1, 0}});
  const McuWindow all{0, 7, 0, 7};
  REQUIRE_FALSE(window_of(scan_loops(), good, parse_jpeg_header(good), all).empty());
  for (size_t at = good.size(); at-- > 2;) {
    if (good[at] != 0xFF || good[at + 1] < 0xD0 || good[at + 1] > 0xD9 || good[at + 1] == 0xD8) continue;
    CAPTURE(at);
    Bytes longer = good, shorter = good;
    longer.insert(longer.begin() + static_cast<ptrdiff_t>(at), 0x55);
    const bool last = good[at + 1] == 0xD9;
    if (!last) CHECK(window_of(scan_loops(), longer, parse_jpeg_header(longer), all).empty());
    if (good[at - 1] == 0 || good[at - 2] == 0xFF) continue;  // stuffed
    shorter.erase(shorter.begin() + static_cast<ptrdiff_t>(at) - 2, shorter.begin() + static_cast<ptrdiff_t>(at));
    CHECK(window_of(scan_loops(), shorter, parse_jpeg_header(shorter), all).empty());
  }
}

TEST_CASE("DC values at which libjpeg stops are found below the box, too") {
  for (const int across : {256, 257}) {
    const Bytes file = growing(across, 256);
    const JpegHeader header = parse_jpeg_header(file);
    REQUIRE(header.not_plain == nullptr);
    const bool stops = across * 256 > 1 << 16;
    CAPTURE(across);
    if (stops)
      CHECK_THROWS_AS(decode_box(block_sets().back(), file, header, {0, 0, 8, 8}), NeedsPillow);
    else
      CHECK_NOTHROW(decode_box(block_sets().back(), file, header, {0, 0, 8, 8}));
  }
}
