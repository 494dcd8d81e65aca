// Entry points change no pixel and no verdict: whatever was decoded before, a box is what it is without them.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "core/decode/jpeg_decoder.h"
#include "core/scan/entry_points.h"
#include "core/scan/scan_bytes.h"
#include "support/block_sets.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

/// Sets the process's limit, and takes it back.
class Learning {
 public:
  explicit Learning(size_t limit) { EntryPoints::of_process().set_limit(limit); }
  ~Learning() { EntryPoints::of_process().set_limit(0); }
};

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

std::optional<Bytes> decode(JpegDecoder& decoder, const Bytes& jpeg, Box box) {
  const JpegHeader header = parse_jpeg_header(jpeg);
  if (header.not_plain != nullptr) return {};
  Keep sink(box);
  try {
    decoder.decode(jpeg, header, box, sink);
  } catch (const NeedsPillow&) {
    return {};
  }
  return sink.pixels;
}

Box random_box(std::minstd_rand& random, int width, int height) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int x = below(width), y = below(height);
  return {x, y, 1 + below(width - x), 1 + below(height - y)};
}

}  // namespace

TEST_CASE("boxes are the same with entry points, in any order of crops, for every sampling") {
  constexpr size_t kEnough = size_t{1} << 24;
  std::minstd_rand random(7);
  JpegDecoder decoder(block_sets().back());
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
        const auto plain = decode(decoder, jpeg, box);
        const Learning learning(kEnough);
        CHECK(decode(decoder, jpeg, box) == plain);  // what was known changes with i, and so does what is learned
        CHECK(decode(decoder, jpeg, box) == plain);
        CHECK(plain.has_value());
      }
    }
  CHECK(EntryPoints::of_process().images() > 0);
}

TEST_CASE("damaged files have the same boxes and the same verdicts with entry points") {
  std::minstd_rand random(8);
  JpegDecoder decoder(block_sets().back());
  int refused = 0, read = 0;
  for (int i = 0; i < 150; ++i) {
    Bytes bad = make_jpeg({.width = 90, .height = 100, .h = {2, 1, 1}, .v = {2, 1, 1}});
    const JpegHeader header = parse_jpeg_header(bad);
    const size_t at = header.scan_begin + random() % (header.scan_end - header.scan_begin);
    if (bad[at] == 0xFF || bad[at - 1] == 0xFF) continue;
    bad[at] = static_cast<uint8_t>(random() % 255);
    for (int crop = 0; crop < 8; ++crop) {
      const Box box = random_box(random, 90, 100);
      const auto plain = decode(decoder, bad, box);
      const Learning learning(size_t{1} << 24);
      CHECK(decode(decoder, bad, box) == plain);
      ++(plain ? read : refused);
    }
  }
  CHECK(refused > 50);
  CHECK(read > 50);
}

TEST_CASE("a byte that changes anywhere makes another file") {
  Bytes file(777, 1);
  const uint64_t key = EntryPoints::key_of(file);
  for (uint8_t& byte : file) {
    byte ^= 4;
    CHECK(EntryPoints::key_of(file) != key);
    byte ^= 4;
  }
  CHECK(EntryPoints::key_of(file) == key);
  file.push_back(0);
  CHECK(EntryPoints::key_of(file) != key);
}

TEST_CASE("the limit holds, and only longer lists replace what is known") {
  EntryPoints points;
  const std::vector<EntryPoint> list(10, EntryPoint{5, {1, 2, 3}});
  std::vector<EntryPoint> found(1);
  points.keep(1, list);
  points.find(1, &found);
  CHECK(found.empty());
  points.set_limit(1000);
  for (uint64_t key = 0; key < 100; ++key) points.keep(key, list);
  CHECK(points.bytes() <= 1000);
  CHECK(points.images() >= 2);
  points.find(0, &found);
  CHECK(found == list);
  points.set_limit(10000);
  points.keep(0, std::span(list).first(3));
  points.find(0, &found);
  CHECK(found == list);
  std::vector<EntryPoint> longer = list;
  longer.push_back({9, {}});
  points.keep(0, longer);
  points.find(0, &found);
  CHECK(found == longer);
}

TEST_CASE("many threads share the points") {
  EntryPoints points;
  points.set_limit(1 << 20);
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
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(points.images() <= 64);
  CHECK(points.bytes() <= size_t{1} << 20);
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
