// OpenCV's bilinear resize: every instruction set gives the bytes of the scalar loops, spans are what rows and columns
// read, and parts of an image equal the same parts of the whole.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/base/aligned_array.h"
#include "core/kernels/opencv_resize/opencv_axis.h"
#include "core/kernels/opencv_resize/opencv_resampler.h"
#include "core/kernels/resize/kernels.h"

namespace {

using namespace headrace;

std::mt19937 random_numbers(20261127);

int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_numbers); }

std::vector<const OpencvLoops*> sets() {
  std::vector<const OpencvLoops*> found;
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    if (const Kernels* set = kernels_named(name)) found.push_back(set->opencv);
  }
  return found;
}

struct Rows final : RowSink {
  void push(const uint8_t* rows, size_t stride, int count) override {
    for (int y = 0; y < count; ++y) made.insert(made.end(), rows + y * stride, rows + y * stride + row_bytes);
  }
  size_t row_bytes = 0;
  std::vector<uint8_t> made;
};

/// The part `want` of the resize, from pixels whose value depends on their place in the image.
std::vector<uint8_t> resized(const OpencvLoops& loops, Size in, Size out, const Box& want, int rows_at_once) {
  const Span x = OpencvAxis(in.width, out.width).span(want.x, want.width);
  const Span y = OpencvAxis(in.height, out.height).span(want.y, want.height);
  const Box have{x.begin, y.begin, x.size(), y.size()};
  RowBuffer image;
  image.reset(have.height, have.width * kPixelBytes);
  for (int row = 0; row < have.height; ++row) {
    for (int i = 0; i < have.width * kPixelBytes; ++i) {
      const unsigned at = unsigned(have.y + row) * 7919u + unsigned(have.x * kPixelBytes + i) * 104729u;
      image.row(row)[i] = uint8_t(at * 2654435761u >> 24);
    }
  }
  Rows rows;
  rows.row_bytes = size_t(want.width) * kPixelBytes;
  OpencvResampler resampler(loops);
  resampler.begin({in, out, Filter::kOpencvBilinear, false, want, have, 0}, rows);
  for (int row = 0; row < have.height; row += rows_at_once) {
    resampler.push(image.row(row), image.stride(), std::min(rows_at_once, have.height - row));
  }
  CHECK(rows.made.size() == rows.row_bytes * size_t(want.height));
  return rows.made;
}

}  // namespace

TEST_CASE("every instruction set resizes as OpenCV's scalar loops do, parts as the whole") {
  for (int i = 0; i < 300; ++i) {
    const int most = i % 3 == 0 ? 300 : 20;
    const Size in{between(1, most), between(1, most)}, out{between(1, most), between(1, most)};
    const Box all{0, 0, out.width, out.height};
    const std::vector<uint8_t> whole = resized(kScalarOpencv, in, out, all, 3);
    const int x = between(0, out.width - 1), y = between(0, out.height - 1);
    const Box part{x, y, between(1, out.width - x), between(1, out.height - y)};
    for (const OpencvLoops* loops : sets()) {
      CHECK(resized(*loops, in, out, all, between(1, 9)) == whole);
      const std::vector<uint8_t> made = resized(*loops, in, out, part, between(1, 9));
      const size_t row_bytes = size_t(part.width) * kPixelBytes;
      for (int row = 0; row < part.height; ++row) {
        const size_t from = (size_t(y + row) * size_t(out.width) + size_t(x)) * kPixelBytes;
        CHECK(std::equal(made.begin() + ptrdiff_t(size_t(row) * row_bytes),
                         made.begin() + ptrdiff_t(size_t(row + 1) * row_bytes), whole.begin() + ptrdiff_t(from)));
      }
    }
  }
}

TEST_CASE("positions stay in the image, and weights add up to 2048") {
  for (int i = 0; i < 300; ++i) {
    const int in = between(1, between(0, 3) == 0 ? 4000 : 60), out = between(1, 300);
    const OpencvAxis axis(in, out);
    for (int at = 0; at < out; ++at) {
      const Span span = axis.span(at, 1);
      for (const OpencvAxis::Taps taps : {axis.row(at), axis.column(at)}) {
        CHECK(taps.first >= span.begin);
        CHECK(taps.second < span.end);
        CHECK(taps.first_weight + taps.second_weight == 2048);
      }
      CHECK(span.begin >= 0);
      CHECK(span.end <= in);
    }
  }
}
