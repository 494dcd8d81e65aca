// The loops that undo filters give what the PNG specification says, byte after byte, and read nothing beyond their
// slack.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "core/png/unfilter.h"

using namespace headrace;

namespace {

constexpr size_t kSlack = 2;

int nearest(int left, int above, int corner) {
  const int guess = left + above - corner;
  const int to_left = std::abs(guess - left), to_above = std::abs(guess - above), to_corner = std::abs(guess - corner);
  if (to_left <= to_above && to_left <= to_corner) return left;
  return to_above <= to_corner ? above : corner;
}

/// Section 9 of the specification.
std::vector<uint8_t> plainly(int filter, std::vector<uint8_t> row, const std::vector<uint8_t>& above, size_t pixel) {
  for (size_t i = 0; i < row.size(); ++i) {
    const int left = i < pixel ? 0 : row[i - pixel], corner = i < pixel ? 0 : above[i - pixel];
    const std::array<int, 5> taken = {0, left, above[i], (left + above[i]) / 2, nearest(left, above[i], corner)};
    row[i] = static_cast<uint8_t>(row[i] + taken[static_cast<size_t>(filter)]);
  }
  return row;
}

}  // namespace

TEST_CASE("rows without their filters") {
  std::mt19937 random(1);
  for (const size_t pixel : {1u, 2u, 3u, 4u, 6u, 8u}) {
    for (const size_t pixels : {1u, 2u, 3u, 7u, 8u, 33u}) {
      for (int filter = 0; filter < 5; ++filter) {
        for (const bool first : {false, true}) {
          CAPTURE(pixel);
          CAPTURE(pixels);
          CAPTURE(filter);
          CAPTURE(first);
          const size_t bytes = pixel * pixels;
          std::vector<uint8_t> row(bytes), above(bytes);
          for (uint8_t& one : row) one = static_cast<uint8_t>(random());
          for (uint8_t& one : above) one = first ? uint8_t{0} : static_cast<uint8_t>(random() % 3 == 0 ? 7 : random());
          const std::vector<uint8_t> wanted = plainly(filter, row, above, pixel);
          row.resize(bytes + kSlack);
          above.resize(bytes + kSlack);
          row.shrink_to_fit();
          above.shrink_to_fit();
          CHECK(unfilter_row(filter, row.data(), first ? nullptr : above.data(), bytes, static_cast<int>(pixel)));
          row.resize(bytes);
          CHECK(row == wanted);
        }
      }
    }
  }
}

TEST_CASE("rows with the Paeth filter, several at once") {
  std::mt19937 random(2);
  for (const size_t pixel : {1u, 2u, 3u, 4u, 6u, 8u}) {
    for (const size_t pixels : {1u, 2u, 3u, 7u, 15u, 16u, 17u, 40u}) {
      for (const int height : {1, 2, 9, 17, 40}) {
        for (const int other : {4, 2, 1, 0}) {  // another filter now and then; 4: none
          CAPTURE(pixel);
          CAPTURE(pixels);
          CAPTURE(height);
          CAPTURE(other);
          const size_t bytes = pixel * pixels;
          std::vector<uint8_t> rows, wanted;
          std::vector<uint8_t> above(bytes);
          for (int y = 0; y < height; ++y) {
            const int filter = random() % 20 == 0 ? other : 4;
            std::vector<uint8_t> row(bytes);
            for (uint8_t& one : row) one = static_cast<uint8_t>(random() % 4 == 0 ? random() : random() % 3);
            rows.push_back(static_cast<uint8_t>(filter));
            rows.insert(rows.end(), row.begin(), row.end());
            above = plainly(filter, row, above, pixel);
            wanted.push_back(static_cast<uint8_t>(filter));
            wanted.insert(wanted.end(), above.begin(), above.end());
          }
          rows.resize(wanted.size() + kSlack);
          rows.shrink_to_fit();
          CHECK(unfilter_rows(rows.data(), bytes, height, static_cast<int>(pixel)));
          rows.resize(wanted.size());
          CHECK(rows == wanted);
        }
      }
    }
  }
}

TEST_CASE("rows whose pixels are smaller than a byte") {
  std::vector<uint8_t> rows = {4, 1, 2, 3, 4, 1, 2, 3};
  std::vector<uint8_t> wanted = {4};
  const std::vector<uint8_t> first = plainly(4, {1, 2, 3}, {0, 0, 0}, 1), second = plainly(4, {1, 2, 3}, first, 1);
  wanted.insert(wanted.end(), first.begin(), first.end());
  wanted.push_back(4);
  wanted.insert(wanted.end(), second.begin(), second.end());
  rows.resize(wanted.size() + kSlack);
  CHECK(unfilter_rows(rows.data(), 3, 2, 1));
  rows.resize(wanted.size());
  CHECK(rows == wanted);
}

TEST_CASE("there are five filters") {
  std::array<uint8_t, 8> row{};
  CHECK_FALSE(unfilter_row(5, row.data(), nullptr, 3, 3));
  CHECK_FALSE(unfilter_row(255, row.data(), nullptr, 3, 1));
  row = {2, 1, 2, 5, 1, 2};
  CHECK_FALSE(unfilter_rows(row.data(), 2, 2, 1));
}
