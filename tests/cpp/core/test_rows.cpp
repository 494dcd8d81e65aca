// Pixels in memory as rows: any strides, boxes and chunks; tables of arrays, and tables made of tables; and a tee,
// which hands each sink exactly the rows and columns of its box, however they are pushed.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "core/base/row_buffer.h"
#include "core/fuse/sinks/raw_rows.h"
#include "core/fuse/sinks/tee.h"
#include "core/io/source/blob.h"

using namespace headrace;

namespace {

// Collects the rows that a sink gets. Reads the slack after each row, so that ASan checks it.
class Collected final : public RowSink {
 public:
  explicit Collected(int width) : width_(width) {}
  void push(const uint8_t* rows, size_t stride, int count) override {
    ++pushes;
    CHECK(count > 0);
    for (int y = 0; y < count; ++y) {
      const uint8_t* row = rows + static_cast<size_t>(y) * stride;
      bytes.insert(bytes.end(), row, row + width_ * kPixelBytes);
      for (size_t i = 0; i < kRowSlack; ++i) slack += row[static_cast<size_t>(width_) * kPixelBytes + i];
    }
  }
  std::vector<uint8_t> bytes;
  int pushes = 0;
  size_t slack = 0;

 private:
  const int width_;
};

std::vector<uint8_t> numbers(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 37 + i / 251);
  return bytes;
}

void check(const Kernels& set, const RawImage& image, Box box) {
  Collected sink(box.width);
  RawRows(set).push(image, box, sink);
  REQUIRE(sink.bytes.size() == static_cast<size_t>(box.width * box.height) * kPixelBytes);
  size_t wrong = 0, at = 0;
  for (int y = box.y; y < box.y + box.height; ++y) {
    for (int x = box.x; x < box.x + box.width; ++x, at += kPixelBytes) {
      const uint8_t* pixel = image.data + y * image.row_stride + x * image.pixel_stride;
      for (int c = 0; c < 3; ++c) {
        wrong += sink.bytes[at + static_cast<size_t>(c)] != pixel[image.channels == 1 ? 0 : c * image.channel_stride];
      }
    }
  }
  CHECK(wrong == 0);
}

uint8_t value_of(int x, int y, int c) { return static_cast<uint8_t>(x * 7 + y * 31 + c); }

std::vector<uint8_t> pixels_of(Box box) {
  std::vector<uint8_t> pixels;
  for (int y = box.y; y < box.y + box.height; ++y) {
    for (int x = box.x; x < box.x + box.width; ++x) {
      for (int c = 0; c < kPixelBytes; ++c) pixels.push_back(value_of(x, y, c));
    }
  }
  return pixels;
}

// Pushes the rows of tee.box(), at most `most` at a time, each time in memory that holds nothing else.
void push_all(Tee& tee, int most) {
  const Box box = tee.box();
  for (int y = box.y; y < box.y + box.height; y += most) {
    const int count = std::min(most, box.y + box.height - y);
    RowBuffer rows;
    rows.reset(count, box.width * kPixelBytes);
    for (int i = 0; i < count; ++i) {
      const auto row = pixels_of({box.x, y + i, box.width, 1});
      std::copy(row.begin(), row.end(), rows.row(i));
      std::fill_n(rows.row(i) + row.size(), kRowSlack, uint8_t{0});
    }
    tee.push(rows.row(0), rows.stride(), count);
  }
}

void check_tee(const std::vector<Box>& boxes, int most) {
  Tee tee;
  std::vector<Collected> sinks;
  for (const Box& box : boxes) sinks.emplace_back(box.width);
  tee.clear();
  for (size_t i = 0; i < boxes.size(); ++i) tee.add(boxes[i], sinks[i]);
  push_all(tee, most);
  for (size_t i = 0; i < boxes.size(); ++i) CHECK(sinks[i].bytes == pixels_of(boxes[i]));
}

}  // namespace

TEST_CASE("raw rows: every kind of strides, by every set of loops") {
  const Size size{19, 11};
  const auto bytes = numbers(size_t{19} * 11 * 8);
  const uint8_t* data = bytes.data();
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    const Kernels* set = kernels_named(name);
    if (set == nullptr) continue;
    for (const Box box : {Box{0, 0, 19, 11}, Box{3, 2, 7, 5}, Box{18, 10, 1, 1}}) {
      check(*set, {data, size, 3, 19 * 3, 3, 1}, box);                 // side by side
      check(*set, {data, size, 3, 19, 1, 19 * 11}, box);               // planes
      check(*set, {data, size, 1, 19, 1, 0}, box);                     // gray
      check(*set, {data, size, 1, 19 * 5, 5, 0}, box);                 // one of five channels
      check(*set, {data + 2, size, 3, 19 * 3, 3, -1}, box);            // blue first
      check(*set, {data + 10 * 19 * 3, size, 3, -19 * 3, 3, 1}, box);  // upside down
      check(*set, {data + 18 * 3, size, 3, 19 * 3, -3, 1}, box);       // mirrored
      check(*set, {data, size, 3, 0, 3, 1}, box);                      // one row again and again
      check(*set, {data, size, 4, 19 * 4, 4, 1}, box);                 // with a fourth byte
    }
  }
}

TEST_CASE("raw rows: a large image comes in several pushes, a small one in one") {
  const auto bytes = numbers(size_t{600} * 100 * 3);
  Collected large(600), small(32);
  RawRows rows(kernels());
  rows.push({bytes.data(), {600, 100}, 3, 600 * 3, 3, 1}, {0, 0, 600, 100}, large);
  rows.push({bytes.data(), {32, 32}, 3, 32 * 3, 3, 1}, {0, 0, 32, 32}, small);
  CHECK(large.pushes > 10);
  CHECK(small.pushes == 1);
  CHECK(large.bytes.size() == size_t{600} * 100 * kPixelBytes);
}

TEST_CASE("tables of tables") {
  const auto bytes = numbers(1000);
  const RawImage first{bytes.data(), {2, 2}, 3, 6, 3, 1};
  const auto array = BlobTable::of_pixels(first, 12, 5), backwards = BlobTable::of_pixels(first, -12, 1);
  const auto none = BlobTable::of_pixels(first, 12, 0);
  const auto files = BlobTable::of_files(std::string("a\0b\0", 4), {0, 2});
  const auto all = BlobTable::of_parts({none, array, none, files, backwards, none});
  REQUIRE(all->size() == 8);
  for (int i = 0; i < 5; ++i) CHECK(all->at(i).raw.data == bytes.data() + 12 * i);
  CHECK(std::string(all->at(5).path) == "a");
  CHECK(std::string(all->at(6).path) == "b");
  CHECK(all->at(7).raw.data == bytes.data());

  const auto some = BlobTable::of_rows(all, {6, 4, 4, 0});
  REQUIRE(some->size() == 4);
  CHECK(std::string(some->at(0).path) == "b");
  CHECK(some->at(1).raw.data == some->at(2).raw.data);
  CHECK(some->at(3).raw.data == bytes.data());
  CHECK(BlobTable::of_rows(some, {})->size() == 0);
  CHECK_THROWS_AS(BlobTable::of_rows(all, {8}), std::out_of_range);
  CHECK_THROWS_AS(BlobTable::of_rows(all, {-1}), std::out_of_range);
}

TEST_CASE("the box of a tee is the smallest that holds all of its sinks' boxes") {
  Collected sink(0);
  Tee tee;
  tee.add({10, 20, 5, 6}, sink);
  CHECK(tee.box() == Box{10, 20, 5, 6});
  tee.add({12, 3, 1, 1}, sink);
  CHECK(tee.box() == Box{10, 3, 5, 23});
  tee.add({0, 21, 100, 2}, sink);
  CHECK(tee.box() == Box{0, 3, 100, 23});
  tee.clear();
  tee.add({50, 60, 7, 8}, sink);
  CHECK(tee.box() == Box{50, 60, 7, 8});
}

TEST_CASE("each sink gets its own rows and columns") {
  check_tee({{3, 4, 10, 20}}, 16);
  check_tee({{0, 0, 40, 40}, {0, 0, 1, 1}, {39, 39, 1, 1}}, 16);
  check_tee({{0, 0, 4, 4}, {30, 50, 4, 4}}, 16);  // rows between the two that no sink takes
  check_tee({{5, 5, 9, 9}, {5, 5, 9, 9}}, 1);
}

TEST_CASE("random boxes and strips") {
  std::mt19937 random(7);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  for (int round = 0; round < 300; ++round) {
    std::vector<Box> boxes;
    for (int i = 0; i < 1 + below(11); ++i) {
      const Box box{below(50), below(50), 1 + below(60), 1 + below(60)};
      boxes.push_back(box);
    }
    check_tee(boxes, 1 + below(40));
  }
}
