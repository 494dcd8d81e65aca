// Rows of arrays with any strides are copied in C order.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/io/source/columns.h"

using namespace headrace;

namespace {

using Bytes = std::vector<uint8_t>;

Bytes numbered(size_t count) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return bytes;
}

/// A row element by element, from the definition.
Bytes expected(const uint8_t* row, const std::vector<Column::Axis>& axes, size_t axis, size_t item) {
  if (axis == axes.size()) return {row, row + item};
  Bytes made;
  for (int64_t i = 0; i < axes[axis].count; ++i) {
    const Bytes part = expected(row + i * axes[axis].stride, axes, axis + 1, item);
    made.insert(made.end(), part.begin(), part.end());
  }
  return made;
}

void check(const uint8_t* data, ptrdiff_t stride, const std::vector<Column::Axis>& axes, size_t item, int64_t rows) {
  const Column column = Column::of(data, stride, axes, item);
  for (int64_t row = 0; row < rows; ++row) {
    const Bytes truth = expected(data + row * stride, axes, 0, item);
    REQUIRE(column.row_bytes == truth.size());
    for (const bool past_caches : {false, true}) {
      for (size_t shift = 0; shift < 3; ++shift) {
        Bytes made(shift + truth.size() + 1, 0xEE);  // one more, which must stay as it is
        column.copy_row(row, made.data() + shift, past_caches);
        CHECK(std::equal(truth.begin(), truth.end(), made.begin() + static_cast<ptrdiff_t>(shift)));
        CHECK(made.back() == 0xEE);
      }
    }
  }
}

}  // namespace

TEST_CASE("rows are copied in C order, whatever their strides") {
  const Bytes memory = numbered(4096);
  const uint8_t* data = memory.data();
  for (const size_t item : {1, 2, 4, 8, 16}) {
    CAPTURE(item);
    const auto size = static_cast<ptrdiff_t>(item);
    check(data, size, {}, item, 5);                                              // a label
    check(data, 12 * size, {{3, 4 * size}, {4, size}}, item, 5);                 // contiguous
    check(data, size, {{3, 20 * size}, {4, 5 * size}}, item, 5);                 // rows along the last axis
    check(data, 24 * size, {{3, 8 * size}, {4, 2 * size}}, item, 5);             // every second element
    check(data, 24 * size, {{3, 8 * size}, {2, 4 * size}, {3, size}}, item, 5);  // runs of three
    check(data + 40 * size, -8 * size, {{2, 4 * size}, {4, size}}, item, 5);     // rows backwards
    check(data + 23 * size, 24 * size, {{4, -6 * size}, {6, -size}}, item, 5);   // everything backwards
    check(data, 0, {{3, 0}, {2, size}}, item, 5);                                // one row for all
    check(data, 4 * size, {{1, 999}, {4, size}, {1, -7}}, item, 5);              // axes of one element
    check(data, 4 * size, {{3, 4 * size}, {0, size}}, item, 5);                  // nothing
  }
}

TEST_CASE("adjacent axes become one run") {
  const Bytes memory = numbered(96);
  CHECK(Column::of(memory.data(), 24, {{2, 12}, {3, 4}}, 4).axes.empty());
  CHECK(Column::of(memory.data(), 24, {{2, 12}, {3, 4}}, 4).run_bytes == 24);
  CHECK(Column::of(memory.data(), 48, {{2, 24}, {3, 4}}, 4).run_bytes == 12);
}

TEST_CASE("a large row is requested as a whole") {
  const Bytes memory = numbered(3 * 400'000 + 77);
  check(memory.data() + 77, 400'000, {{400'000, 1}}, 1, 3);
}
