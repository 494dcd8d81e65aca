// A tee hands each sink exactly the rows and columns of its box, however the rows are pushed.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/base/row_buffer.h"
#include "core/rows/tee.h"

using namespace headrace;

namespace {

// Collects the pixels that a sink gets. Reads the slack after each row, so that ASan checks it.
class Collected final : public RowSink {
 public:
  explicit Collected(Box box) : box_(box) {}
  void push(const uint8_t* rows, size_t stride, int count) override {
    CHECK(count > 0);
    for (int y = 0; y < count; ++y) {
      const uint8_t* row = rows + static_cast<size_t>(y) * stride;
      const size_t bytes = static_cast<size_t>(box_.width) * kPixelBytes;
      pixels.insert(pixels.end(), row, row + bytes);
      for (size_t i = 0; i < kRowSlack; ++i) slack += row[bytes + i];
    }
  }
  std::vector<uint8_t> pixels;
  size_t slack = 0;

 private:
  const Box box_;
};

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

void check(const std::vector<Box>& boxes, int most) {
  Tee tee;
  std::vector<Collected> sinks(boxes.begin(), boxes.end());
  tee.clear();
  for (size_t i = 0; i < boxes.size(); ++i) tee.add(boxes[i], sinks[i]);
  push_all(tee, most);
  for (size_t i = 0; i < boxes.size(); ++i) CHECK(sinks[i].pixels == pixels_of(boxes[i]));
}

}  // namespace

TEST_CASE("the box of a tee is the smallest that holds all of its sinks' boxes") {
  Collected sink({});
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
  check({{3, 4, 10, 20}}, 16);
  check({{0, 0, 40, 40}, {0, 0, 1, 1}, {39, 39, 1, 1}}, 16);
  check({{0, 0, 4, 4}, {30, 50, 4, 4}}, 16);  // rows between the two that no sink takes
  check({{5, 5, 9, 9}, {5, 5, 9, 9}}, 1);
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
    check(boxes, 1 + below(40));
  }
}
