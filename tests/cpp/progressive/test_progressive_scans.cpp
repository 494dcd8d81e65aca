// Progressive scans read side by side: libjpeg's coefficients, whatever the scans, the window and the loops.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/jpeg/progressive/progressive_decoder.h"
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

Box random_box(Random& random, int width, int height) {
  Box box;
  box.x = draw(random, 0, width - 1);
  box.y = draw(random, 0, height - 1);
  box.width = draw(random, 1, width - box.x);
  box.height = draw(random, 1, height - box.y);
  return box;
}

struct Kind {
  std::vector<int> h, v;
};

const Kind kKinds[] = {{{1, 1, 1}, {1, 1, 1}},
                       {{2, 1, 1}, {2, 1, 1}},
                       {{2, 1, 1}, {1, 1, 1}},
                       {{1, 1, 1}, {2, 1, 1}},
                       {{2, 2, 1}, {2, 1, 2}},
                       {{4, 1, 1}, {1, 1, 1}},
                       {{1}, {1}},
                       {{2}, {2}}};

}  // namespace

TEST_CASE("coefficients are libjpeg's, whatever the scans, the restarts and the window") {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const Kind& kind = kKinds[static_cast<size_t>(i) % std::size(kKinds)];
    ProgressiveOptions options;
    options.h = kind.h;
    options.v = kind.v;
    options.width = draw(random, 1, 150);
    options.height = draw(random, 1, 120);
    options.restart_interval = i % 3 == 0 ? draw(random, 1, 30) : 0;
    options.density = std::array{2, 20, 60, 100}[static_cast<size_t>(draw(random, 0, 3))];
    options.most = std::array{1, 3, 100, 1023}[static_cast<size_t>(draw(random, 0, 3))];
    const Bytes jpeg = make_progressive(random, options, random_script(random, static_cast<int>(kind.h.size())));
    const JpegHeader header = parse_jpeg_header(jpeg);
    if (header.not_plain != nullptr) continue;  // a script of too many scans was cut short
    CAPTURE(i);
    for (int box = 0; box < 4; ++box) {
      const Box at = random_box(random, options.width, options.height);
      const char* const wrong = check_progressive(jpeg, header, at);
      REQUIRE(std::string(wrong == nullptr ? "" : wrong) == "");
      const McuWindow all{0, 0, 0, 0};
      REQUIRE_FALSE(window_of(kPlainScans, jpeg, header, all).empty());  // nothing was refused
    }
  }
}

TEST_CASE("runs of ended blocks that are longer than rows") {
  Random random(2);
  const std::vector<ScanScript> script = {{{0}, 0, 0, 0, 0}, {{0}, 1, 63, 0, 1}, {{0}, 1, 63, 1, 0}};
  ProgressiveOptions options{.width = 2000, .height = 300, .h = {1}, .v = {1}, .density = 0};
  for (const int density : {0, 1}) {
    options.density = density;
    const Bytes jpeg = make_progressive(random, options, script);
    const JpegHeader header = parse_jpeg_header(jpeg);
    for (const Box box : {Box{0, 0, 2000, 300}, Box{700, 130, 300, 20}, Box{1990, 290, 10, 10}}) {
      const char* const wrong = check_progressive(jpeg, header, box);
      REQUIRE(std::string(wrong == nullptr ? "" : wrong) == "");
      REQUIRE_FALSE(window_of(kPlainScans, jpeg, header, {0, 36, 0, 9}).empty());
    }
  }
}

TEST_CASE("boxes have the pixels of a full decode, in images of several strips") {
  Random random(3);
  for (const Kind& kind : {kKinds[0], kKinds[1], kKinds[2], kKinds[3], kKinds[6]}) {
    ProgressiveOptions options{.width = 611, .height = 407, .h = kind.h, .v = kind.v, .density = 10, .most = 40};
    const Bytes jpeg = make_progressive(random, options, random_script(random, static_cast<int>(kind.h.size())));
    const JpegHeader header = parse_jpeg_header(jpeg);
    if (header.not_plain != nullptr) continue;
    const Bytes whole = decode_whole(jpeg);
    for (const BlockLoops* set : block_sets()) {
      JpegDecoder decoder(set);
      for (int i = 0; i < 12; ++i) {
        const Box box = i == 0 ? Box{0, 0, 611, 407} : random_box(random, 611, 407);
        CAPTURE(set->name);
        CAPTURE(box.x);
        CAPTURE(box.y);
        CAPTURE(box.width);
        CAPTURE(box.height);
        BoxSink sink(box.width);
        decoder.decode(jpeg, header, box, sink);
        REQUIRE(sink.pixels == part_of(whole, 611, box));
      }
    }
  }
}

TEST_CASE("files of many scans, or with a table between scans, are libjpeg's") {
  Random random(4);
  std::vector<ScanScript> script = {{{0}, 0, 0, 0, 0}};
  for (int k = 1; k < 64; ++k) script.push_back({{0}, k, k, 0, 1});
  script.push_back({{0}, 1, 63, 1, 0});
  const ProgressiveOptions options{.h = {1}, .v = {1}};
  const Bytes many = make_progressive(random, options, script);
  const Bytes few = make_progressive(random, options, {{{0}, 0, 0, 0, 0}, {{0}, 1, 63, 0, 0}});
  Bytes late = few;
  const auto mark = [](int marker) { return std::array<uint8_t, 2>{0xFF, static_cast<uint8_t>(marker)}; };
  const auto table = mark(0xDB), scan = mark(0xDA);
  const auto from = std::search(few.begin(), few.end(), table.begin(), table.end());
  const size_t length = static_cast<size_t>(from[2] << 8 | from[3]) + 2;
  const Bytes segment(from, from + static_cast<ptrdiff_t>(length));
  const auto first = std::search(late.begin(), late.end(), scan.begin(), scan.end());
  const auto codes = mark(0xC4);
  const auto between = std::search(first, late.end(), codes.begin(), codes.end());
  late.insert(between, segment.begin(), segment.end());
  for (const Bytes& jpeg : {many, late}) {
    const JpegHeader header = parse_jpeg_header(jpeg);
    REQUIRE(header.not_plain == nullptr);
    ProgressiveDecoder decoder;
    CHECK_FALSE(decoder.begin(jpeg, header, {0, 0, 0, 0}));
    CHECK(decode_box(block_sets().back(), jpeg, header, {0, 0, 37, 29}) == decode_whole(jpeg));
  }
}
