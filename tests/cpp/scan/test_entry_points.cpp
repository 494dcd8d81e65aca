// Entry points change no pixel and no verdict: whatever was decoded before, a box is what it is without them.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/jpeg/scan/entry_points.h"
#include "core/jpeg/scan/find_ff.h"
#include "core/jpeg/scan/scan_bytes.h"
#include "support/block_sets.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

constexpr size_t kEnough = size_t{1} << 24;

class Keep : public RowSink {
 public:
  explicit Keep(Box box) : row_bytes_(static_cast<size_t>(box.width) * kPixelBytes) {}
  void push(const uint8_t* rows, size_t stride, int count) override {
    for (int i = 0; i < count; ++i, rows += stride) pixels.insert(pixels.end(), rows, rows + row_bytes_);
  }
  Bytes pixels;

 private:
  size_t row_bytes_;
};

std::optional<Bytes> decode(JpegDecoder& decoder, const Bytes& jpeg, Box box, EntryPoints* points = nullptr) {
  const JpegHeader header = parse_jpeg_header(jpeg);
  if (header.not_plain != nullptr) return {};
  Keep sink(box);
  try {
    decoder.decode(jpeg, header, box, sink, points);
  } catch (const NeedsPillow&) {
    return {};
  }
  return sink.pixels;
}

/// One in four is the whole image, whose rows are known where they are decoded side by side.
Box random_box(std::minstd_rand& random, int width, int height) {
  if (random() % 4 == 0) return {0, 0, width, height};
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int x = below(width), y = below(height);
  return {x, y, 1 + below(width - x), 1 + below(height - y)};
}

}  // namespace

TEST_CASE("boxes are the same with entry points, in any order of crops, for every sampling") {
  std::minstd_rand random(7);
  EntryPoints points(kEnough);
  JpegDecoder ours(block_sets().back()), librarys(nullptr);  // one table for both ways of making pixels
  for (const Sampling& sampling : kSamplings)
    for (const int kind : {0, 1, 2, 3}) {
      const Bytes jpeg = make_jpeg({.width = 130,
                                    .height = 140,
                                    .components = kind == 1 ? 1 : 3,
                                    .h = sampling.h,
                                    .v = sampling.v,
                                    .optimal_tables = kind == 2,
                                    .quality = kind == 3 ? 100 : 60});
      for (int i = 0; i < 12; ++i) {
        const Box box = random_box(random, 130, 140);
        JpegDecoder& decoder = i % 2 == 0 ? ours : librarys;
        const auto plain = decode(decoder, jpeg, box);
        CHECK(decode(decoder, jpeg, box, &points) == plain);  // what is known changes with i, and so what is learned
        CHECK(decode(decoder, jpeg, box, &points) == plain);
        CHECK(plain.has_value());
      }
    }
  const EntryCounts counts = points.counts();
  CHECK(counts.images > 0);
  CHECK(counts.entered > counts.decodes / 2);
  CHECK(counts.entered < counts.decodes);
}

TEST_CASE("damaged files have the same boxes and the same verdicts with entry points") {
  std::minstd_rand random(8);
  JpegDecoder decoder(block_sets().back());
  int refused = 0, read = 0;
  EntryPoints points(kEnough);
  for (int i = 0; i < 150; ++i) {
    Bytes bad = make_jpeg({.width = 90, .height = 180, .h = {2, 1, 1}, .v = {2, 1, 1}});
    const JpegHeader header = parse_jpeg_header(bad);
    const size_t at = header.scan_begin + random() % (header.scan_end - header.scan_begin);
    if (bad[at] == 0xFF || bad[at - 1] == 0xFF) continue;
    bad[at] = static_cast<uint8_t>(random() % 255);
    for (int crop = 0; crop < 8; ++crop) {
      const Box box = random_box(random, 90, 180);
      const auto plain = decode(decoder, bad, box);
      CHECK(decode(decoder, bad, box, &points) == plain);
      ++(plain ? read : refused);
    }
  }
  CHECK(refused > 50);
  CHECK(read > 50);
}

TEST_CASE("wrong entry points, as those of a file may be, give other pixels or a refusal, and nothing worse") {
  std::minstd_rand random(10);
  JpegDecoder decoder(block_sets().back());
  const Bytes jpeg = make_jpeg({.width = 90, .height = 120, .h = {2, 1, 1}, .v = {2, 1, 1}});
  int refused = 0, other = 0;
  for (int i = 0; i < 900; ++i) {
    EntryPoints points(kEnough);
    std::vector<EntryPoint> wrong(1 + random() % 20);
    for (EntryPoint& one : wrong) {
      one.bit = static_cast<uint32_t>(random() % (i % 3 == 0 ? 0xFFFFFFFFu : static_cast<unsigned>(8 * jpeg.size())));
      for (int16_t& value : one.dc) value = static_cast<int16_t>(random());
    }
    points.keep(points.key_of(jpeg), wrong);
    const Box box = random_box(random, 90, 120);
    const auto found = decode(decoder, jpeg, box, &points), plain = decode(decoder, jpeg, box);
    refused += !found;
    other += found && found != plain;
  }
  CHECK(refused > 20);
  CHECK(other > 20);
}

TEST_CASE("a byte that changes anywhere makes another file") {
  Bytes file(777, 1);
  const EntryPoints points(kEnough), others(kEnough), same(kEnough, points.secrets());
  const uint64_t key = points.key_of(file);
  CHECK(others.key_of(file) != key);
  CHECK(same.key_of(file) == key);
  for (uint8_t& byte : file) {
    byte ^= 4;
    CHECK(points.key_of(file) != key);
    byte ^= 4;
  }
  CHECK(points.key_of(file) == key);
  file.push_back(0);
  CHECK(points.key_of(file) != key);
}

TEST_CASE("the limit holds, and only longer lists replace what is known") {
  EntryPoints none(0), points(1000), more(10000);
  const std::vector<EntryPoint> list(10, EntryPoint{5, {1, 2, 3}});
  std::vector<EntryPoint> found(1);
  none.keep(1, list);
  none.find(1, &found);
  CHECK(found.empty());
  for (uint64_t key = 0; key < 100; ++key) points.keep(key, list);
  CHECK(points.counts().bytes <= 1000);
  CHECK(points.counts().images >= 2);
  points.find(0, &found);
  CHECK(found == list);
  for (const EntryList& one : points.all()) more.keep(one.key, one.points);
  CHECK(more.counts().images == points.counts().images);
  CHECK(more.counts().bytes == points.counts().bytes);
  more.keep(0, std::span(list).first(3));
  more.find(0, &found);
  CHECK(found == list);
  std::vector<EntryPoint> longer = list;
  longer.push_back({9, {}});
  more.keep(0, longer);
  more.find(0, &found);
  CHECK(found == longer);
}

TEST_CASE("many threads share the points") {
  EntryPoints points(1 << 20);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&points, t] {
      std::vector<EntryPoint> found;
      for (uint32_t i = 0; i < 2000; ++i) {
        const uint32_t key = (i * 7 + t) % 64;
        points.find(key, &found);
        for (const EntryPoint& point : found) CHECK(point.bit == key);
        found.assign(1 + i % 20, EntryPoint{key, {}});
        points.keep(key, found);
        if (i % 256 == 0)
          for (const EntryList& one : points.all()) CHECK(one.points.front().bit == one.key);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(points.counts().images <= 64);
  CHECK(points.counts().bytes <= size_t{1} << 20);
}

TEST_CASE("a table is full when a sixteenth of its limit is left") {
  constexpr size_t kLimit = 16000;
  const std::vector<EntryPoint> rows(10);
  EntryPoints points(kLimit);
  for (uint64_t key = 0; !points.is_full(); ++key) {
    CHECK(points.counts().bytes < kLimit - kLimit / 16);
    points.keep(key, rows);
    REQUIRE(points.counts().images == key + 1);
  }
  CHECK(points.counts().bytes <= kLimit);
}

TEST_CASE("FFs are counted") {
  std::minstd_rand random(4);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{4095}, size_t{4096}, size_t{9000}}) {
    for (const unsigned often : {1U, 3U, 300U}) {
      Bytes bytes(size);
      for (uint8_t& byte : bytes) byte = random() % often == 0 ? 0xFF : static_cast<uint8_t>(random() % 0xFF);
      size_t expected = 0;
      for (const uint8_t byte : bytes) expected += byte == 0xFF;
      CHECK(count_ff(bytes.data(), bytes.data() + size) == expected);
    }
  }
}

TEST_CASE("the first marker is found, wherever it is") {
  std::minstd_rand random(5);
  for (size_t size = 0; size < 300; ++size) {
    for (const unsigned often : {1U, 2U, 5U, 40U}) {
      Bytes bytes(size);
      for (uint8_t& byte : bytes) byte = random() % often == 0 ? 0xFF : static_cast<uint8_t>(random() % 0xFF);
      for (size_t i = 1; i < size; ++i)
        if (bytes[i - 1] == 0xFF && random() % 50 != 0) bytes[i] = 0;
      size_t expected = 0;
      while (expected < size && (bytes[expected] != 0xFF || (expected + 1 < size && bytes[expected + 1] == 0)))
        ++expected;
      CHECK(find_marker(bytes.data(), bytes.data() + size) == bytes.data() + expected);
    }
  }
}

TEST_CASE("a place in a segment is a place in the scan") {
  std::minstd_rand random(9);
  Bytes scan, plain;
  std::vector<size_t> begins;
  for (int i = 0; i < 3000; ++i) {
    begins.push_back(scan.size());
    const uint8_t byte = random() % 3 == 0 ? 0xFF : static_cast<uint8_t>(random());
    plain.push_back(byte);
    scan.push_back(byte);
    if (byte == 0xFF) scan.push_back(0);
  }
  ScanBytes bytes;
  bytes.begin(scan, 16);
  for (const size_t first : {size_t{0}, size_t{1}, size_t{700}}) {
    bytes.enter_at(begins[first], scan.size());
    REQUIRE(bytes.size() == plain.size() - first);
    CHECK(std::equal(plain.begin() + static_cast<ptrdiff_t>(first), plain.end(), bytes.data()));
    std::vector<size_t> at = {0, 1, 5, 6, 100, 101, 102, 2000};
    bytes.to_scan(at);
    CHECK(at == std::vector<size_t>{begins[first], begins[first + 1], begins[first + 5], begins[first + 6],
                                    begins[first + 100], begins[first + 101], begins[first + 102],
                                    begins[first + 2000]});
  }
}
