// The crop decoder: every box equals that part of a full decode; damaged data is left to Pillow.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

#include "core/base/error.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "support/block_sets.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

/// Compares the rows it gets with a box of a full decode.
class CompareSink : public RowSink {
 public:
  /// `whole` must outlive the sink.
  CompareSink(const Bytes& whole, int width, Box box) : whole_(whole), width_(width), box_(box) {}
  void push(const uint8_t* rows, size_t stride, int count) override {
    for (int i = 0; i < count; ++i, ++rows_) {
      const uint8_t* row = rows + static_cast<size_t>(i) * stride;
      const size_t at =
          (static_cast<size_t>(box_.y + rows_) * static_cast<size_t>(width_) + static_cast<size_t>(box_.x)) *
          kPixelBytes;
      if (std::memcmp(row, &whole_[at], static_cast<size_t>(box_.width) * kPixelBytes) != 0) ++different_;
      for (size_t k = 0; k < kRowSlack; ++k) slack_ += row[static_cast<size_t>(box_.width) * kPixelBytes + k];
    }
  }
  bool equal() const { return rows_ == box_.height && different_ == 0; }

 private:
  const Bytes& whole_;
  int width_;
  Box box_;
  int rows_ = 0, different_ = 0;
  unsigned slack_ = 0;  // the sum of the slack bytes, so that ASan checks these reads
};

class NullSink : public RowSink {
 public:
  void push(const uint8_t*, size_t, int count) override { rows += count; }
  int rows = 0;
};

class ThrowingSink : public RowSink {
 public:
  void push(const uint8_t*, size_t, int) override { throw std::runtime_error("the sink is full"); }
};

void check_boxes(JpegDecoder& decoder, const JpegOptions& options) {
  const Bytes jpeg = make_jpeg(options);
  const JpegHeader header = parse_jpeg_header(jpeg);
  REQUIRE(header.not_plain == nullptr);
  const Bytes whole = decode_whole(jpeg);
  const auto check = [&](Box box) {
    CAPTURE(box.x);
    CAPTURE(box.y);
    CAPTURE(box.width);
    CAPTURE(box.height);
    CompareSink sink(whole, options.width, box);
    decoder.decode(jpeg, header, box, sink);
    CHECK(sink.equal());
  };
  const int width = options.width, height = options.height;
  for (int x = 0; x < width; ++x)
    for (int w = 1; x + w <= width; w += 1 + w / 3) check({x, (x * 7 + w) % height, w, 1});
  for (int y = 0; y < height; ++y)
    for (int h = 1; y + h <= height; h += 1 + h / 3) check({(y * 5 + h) % width, y, 1, h});
  check({0, 0, width, height});
  check({0, height - 1, width, 1});
  check({width - 1, 0, 1, height});
}

}  // namespace

TEST_CASE("a box has the bytes of a full decode, for every sampling, coding and size") {
  const Size sizes[] = {{37, 29}, {16, 16}, {3, 41}, {50, 2}, {1, 1}, {65, 17}};
  for (const BlockLoops* loops : {static_cast<const BlockLoops*>(nullptr), block_sets().back()}) {
    JpegDecoder decoder(loops);  // one for all, as a worker has it
    for (const Sampling& sampling : kSamplings)
      for (const Size size : sizes)
        for (const bool progressive : {false, true}) {
          CAPTURE(sampling.h);
          CAPTURE(size.width);
          CAPTURE(progressive);
          check_boxes(decoder, {.width = size.width,
                                .height = size.height,
                                .h = sampling.h,
                                .v = sampling.v,
                                .progressive = progressive});
        }
    for (const std::array<int, 3> v : {std::array{1, 1, 1}, std::array{2, 1, 1}}) {
      check_boxes(decoder, {.v = v, .restart_rows = 1});
      check_boxes(decoder, {.v = v, .progressive = true, .restart_rows = 1});
      check_boxes(decoder, {.v = v, .rgb = true});
      check_boxes(decoder, {.v = v, .optimal_tables = true});
      check_boxes(decoder, {.v = v, .interleaved = false});
      check_boxes(decoder, {.v = v, .quality = 100});
      check_boxes(decoder, {.v = v, .quality = 5});
      check_boxes(decoder, {.components = 1, .h = {2, 1, 1}, .v = v});
    }
  }
}

TEST_CASE("damage inside the data is left to Pillow, and the decoder works on") {
  // With restarts, so that a row that ends too early or too late is noticed.
  const Bytes good = make_jpeg({.width = 64, .height = 64, .optimal_tables = true, .restart_rows = 1});
  const JpegHeader header = parse_jpeg_header(good);
  JpegDecoder decoder(block_sets().back());
  int refused = 0;
  for (size_t at = header.scan_begin; at < header.scan_end; at += 3) {
    Bytes bad = good;
    bad[at] ^= 0x35;
    const JpegHeader now = parse_jpeg_header(bad);
    if (now.not_plain != nullptr) continue;
    NullSink sink;
    try {
      decoder.decode(bad, now, {0, 0, 64, 64}, sink);
      CHECK(sink.rows == 64);
    } catch (const NeedsPillow& e) {
      CHECK(e.stage() == Stage::kDecode);
      CHECK(std::string(e.what()).size() > 10);
      ++refused;
    }
  }
  CHECK(refused > 0);
  const Bytes whole = decode_whole(good);
  CompareSink sink(whole, 64, {0, 0, 64, 64});
  decoder.decode(good, header, {0, 0, 64, 64}, sink);
  CHECK(sink.equal());
}

TEST_CASE("damage beside a box changes it as it changes libjpeg's pixels, or is left to Pillow") {
  std::minstd_rand random(1);
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  int read = 0;
  for (int i = 0; i < 400; ++i) {
    const Sampling& sampling = kSamplings[static_cast<size_t>(i) % 3];
    Bytes bad = make_jpeg({.width = 90, .height = 70, .h = sampling.h, .v = sampling.v, .restart_rows = 1 + i / 200});
    const JpegHeader good = parse_jpeg_header(bad);
    for (int changes = 1 + below(3); changes > 0; --changes) {
      const size_t at = good.scan_begin + static_cast<size_t>(below(good.scan_end - good.scan_begin));
      if (bad[at] != 0xFF && bad[at - 1] != 0xFF) bad[at] = static_cast<uint8_t>(below(255));
    }
    const JpegHeader header = parse_jpeg_header(bad);
    if (header.not_plain != nullptr) continue;
    const Bytes whole = decode_whole(bad);  // conceals
    JpegDecoder decoder(block_sets()[static_cast<size_t>(i) % block_sets().size()]);
    for (int box = 0; box < 5; ++box) {
      const int x = below(80), y = below(60);
      const Box wanted{x, y, 1 + below(static_cast<size_t>(90 - x)), 1 + below(static_cast<size_t>(70 - y))};
      CompareSink sink(whole, 90, wanted);
      try {
        decoder.decode(bad, header, wanted, sink);
      } catch (const NeedsPillow&) {
        continue;
      }
      CHECK(sink.equal());
      ++read;
    }
  }
  CHECK(read > 100);
}

TEST_CASE("data cut short is left to Pillow, wherever the cut") {
  const Bytes good = make_jpeg({.width = 64, .height = 64, .restart_rows = 1});
  const JpegHeader header = parse_jpeg_header(good);
  JpegDecoder decoder(block_sets().back());
  for (size_t size = 0; size < header.scan_end; size += 7) {
    const Bytes cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(size));
    NullSink sink;
    CHECK_THROWS_AS(decoder.decode(cut, header, {0, 0, 64, 64}, sink), NeedsPillow);
  }
}

TEST_CASE("an exception of the sink passes through, and the decoder works on") {
  for (const bool progressive : {false, true}) {
    const Bytes jpeg = make_jpeg({.progressive = progressive});
    const JpegHeader header = parse_jpeg_header(jpeg);
    const Bytes whole = decode_whole(jpeg);
    JpegDecoder decoder(block_sets().back());
    ThrowingSink full;
    CHECK_THROWS_AS(decoder.decode(jpeg, header, {5, 5, 20, 20}, full), std::runtime_error);
    CompareSink sink(whole, 37, {5, 5, 20, 20});
    decoder.decode(jpeg, header, {5, 5, 20, 20}, sink);
    CHECK(sink.equal());
  }
}

TEST_CASE("tables of one image never serve the next") {
  const Bytes standard = make_jpeg({}), optimal = make_jpeg({.optimal_tables = true, .quality = 30});
  const Bytes whole_standard = decode_whole(standard), whole_optimal = decode_whole(optimal);
  JpegDecoder decoder(block_sets().back());
  for (int i = 0; i < 3; ++i) {
    CompareSink first(whole_standard, 37, {0, 0, 37, 29}), second(whole_optimal, 37, {0, 0, 37, 29});
    decoder.decode(standard, parse_jpeg_header(standard), {0, 0, 37, 29}, first);
    decoder.decode(optimal, parse_jpeg_header(optimal), {0, 0, 37, 29}, second);
    CHECK(first.equal());
    CHECK(second.equal());
  }
}
