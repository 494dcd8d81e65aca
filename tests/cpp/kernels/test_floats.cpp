// Resizes in float32: every instruction set gives the floats of the scalar loops and writes nowhere else, spans are
// what tables read, and simple sums have the roundings that they are meant to have.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/aligned_array.h"
#include "core/kernels/float_resize/float_resampler.h"
#include "core/kernels/resize/kernels.h"

namespace {

using namespace headrace;

constexpr Filter kFilters[] = {Filter::kFloatBilinear, Filter::kFloatBicubic, Filter::kFusedBilinear,
                               Filter::kFusedBicubic};
constexpr float kUntouched = -7.5f;

std::mt19937 random_numbers(20261125);

int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_numbers); }

struct Case {
  int in, out, first, count;
  Filter filter = kFilters[between(0, 3)];
  FloatTable table;

  Case() {
    in = between(1, between(0, 3) == 0 ? 2000 : 200);
    out = between(1, 130);
    first = between(0, out - 1);
    count = between(1, out - first);
    table.build(in, out, filter, first, count);
  }
};

std::vector<const FloatLoops*> sets() {
  std::vector<const FloatLoops*> found;
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    if (const Kernels* set = kernels_named(name)) found.push_back(set->floats);
  }
  return found;
}

/// Bytes in a block that ends with the last one, so that a sanitizer reports a read beyond it.
std::vector<uint8_t> bytes(size_t count) {
  std::vector<uint8_t> made(count);
  for (uint8_t& b : made) b = static_cast<uint8_t>(between(0, 255));
  made.shrink_to_fit();
  return made;
}

std::vector<float> floats(size_t count) {
  std::vector<float> made(count);
  for (float& f : made) f = std::uniform_real_distribution<float>(-20, 280)(random_numbers);
  made.shrink_to_fit();
  return made;
}

/// One column of a window of all `weights`, as `loops` add it up.
float column(const FloatLoops& loops, const std::vector<float>& values, const std::vector<float>& weights, bool fused) {
  const int32_t start = 0, taps = static_cast<int32_t>(weights.size());
  const FloatTableView table{1, taps, fused, &start, &taps, weights.data()};
  std::vector<float> rows(values.size() * kPixelBytes);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = values[i / kPixelBytes];
  float made[kPixelBytes];
  loops.along_y(rows.data(), kPixelBytes, table, 0, kPixelBytes, made);
  CHECK(std::all_of(made, made + kPixelBytes, [&](float one) { return one == made[0]; }));
  return made[0];
}

struct KeptRows final : FloatRowSink {
  explicit KeptRows(size_t width) : floats(width * kPixelBytes) {}
  void push(const float* row) override { values.insert(values.end(), row, row + floats); }
  size_t floats;
  std::vector<float> values;
};

struct KeptBytes final : RowSink {
  explicit KeptBytes(size_t width) : bytes(width * kPixelBytes) {}
  void push(const uint8_t* rows, size_t stride, int count) override {
    for (int y = 0; y < count; ++y)
      pixels.insert(pixels.end(), rows + size_t(y) * stride, rows + size_t(y) * stride + bytes);
  }
  size_t bytes;
  std::vector<uint8_t> pixels;
};

}  // namespace

TEST_CASE("values of a table are resized as the bytes that they are equal to, and multiples of these as multiples") {
  std::vector<float> same(size_t(3) * 256), four(same.size());
  for (size_t i = 0; i < same.size(); ++i) {
    same[i] = float(i % 256);
    four[i] = 4 * same[i];
  }
  for (int i = 0; i < 200; ++i) {
    const Size in{between(1, 90), between(1, 90)};
    const Size out{between(0, 4) == 0 ? in.width : between(1, 70), between(0, 4) == 0 ? in.height : between(1, 70)};
    const std::vector<uint8_t> image = bytes(size_t(in.width) * size_t(in.height) * kPixelBytes);
    const size_t stride = size_t(in.width) * kPixelBytes;
    ResizeJob job;
    job.in = in;
    job.out = out;
    job.filter = kFilters[between(0, 3)];
    job.want = {0, 0, out.width, out.height};
    job.have = {0, 0, in.width, in.height};
    std::vector<std::vector<float>> made;
    for (const FloatLoops* loops : sets()) {
      KeptBytes rounded(size_t(out.width));
      KeptRows values(size_t(out.width)), multiples(size_t(out.width));
      FloatResampler resampler(*loops);  // used again, with and without a table
      const auto push = [&] {
        for (int y = 0; y < in.height;) {
          const int count = std::min(between(1, 20), in.height - y);
          resampler.push(image.data() + size_t(y) * stride, stride, count);
          y += count;
        }
      };
      resampler.begin(job, same.data(), values);
      push();
      resampler.begin(job, rounded);
      push();
      resampler.begin(job, four.data(), multiples);
      push();
      REQUIRE(values.values.size() == size_t(out.width) * size_t(out.height) * kPixelBytes);
      REQUIRE(rounded.pixels.size() == values.values.size());
      REQUIRE(multiples.values.size() == values.values.size());
      bool equal = true;
      for (size_t at = 0; at < values.values.size(); ++at) {
        if (at % kPixelBytes == kPixelBytes - 1) continue;
        const float value = values.values[at];
        equal &= rounded.pixels[at] == uint8_t(std::nearbyint(std::clamp(value, 0.0f, 255.0f)));
        equal &= multiples.values[at] == 4 * value;
      }
      REQUIRE(equal);
      made.push_back(values.values);
    }
    for (const auto& one : made) REQUIRE(one == made[0]);
  }
}

TEST_CASE("the span of floats is what the table reads, inside the image, and its weights add up to 1") {
  for (int i = 0; i < 500; ++i) {
    const Case c;
    const Span span = float_span(c.in, c.out, c.filter, c.first, c.count);
    CHECK(span.begin >= 0);
    CHECK(span.end <= c.in);
    CHECK(span.begin == c.table.span().begin);
    CHECK(span.end == c.table.span().end);
    FloatTable shifted;
    shifted.build(c.in, c.out, c.filter, c.first, c.count, span.begin);
    CHECK(shifted.span().begin == 0);
    for (int x = 0; x < c.count; ++x) {
      const float* weight = &c.table.weight[size_t(x) * size_t(c.table.taps_stride)];
      float sum = 0;
      for (int t = 0; t < c.table.taps[x]; ++t) sum += weight[t];
      CHECK(std::fabs(sum - 1.0f) < 1e-5f);
    }
  }
}

TEST_CASE("all sets give the same floats in both passes, and do not change what is beside them") {
  for (int i = 0; i < 1000; ++i) {
    const Case c;
    const Span span = c.table.span();
    FloatTable table;
    table.build(c.in, c.out, c.filter, c.first, c.count, span.begin);
    const int rows = between(1, kFloatRows);
    const size_t row_bytes = size_t(span.size()) * kPixelBytes, row_floats = size_t(c.count) * kPixelBytes + 3;
    const std::vector<uint8_t> image = bytes(row_bytes * size_t(rows));
    const size_t columns = size_t(between(1, 40)) * kPixelBytes;
    const std::vector<float> tall = floats(size_t(span.size()) * columns);
    std::vector<std::vector<float>> along_x, along_y;
    for (const FloatLoops* loops : sets()) {
      AlignedArray<float> scratch;
      scratch.resize(size_t(span.size()) * kFloatScratch);
      std::vector<float> made(row_floats * size_t(rows), kUntouched), column_sums(columns + 3, kUntouched);
      loops->along_x(image.data(), row_bytes, rows, table.view(), made.data(), row_floats, scratch.data());
      for (int y = 0; y < rows; ++y) CHECK(made[size_t(y + 1) * row_floats - 1] == kUntouched);
      const int index = c.count - 1;
      loops->along_y(&tall[size_t(table.start[index]) * columns], columns, table.view(), index,
                     static_cast<int>(columns), column_sums.data());
      CHECK(column_sums[columns] == kUntouched);
      along_x.push_back(made);
      along_y.push_back(column_sums);
    }
    for (const auto& made : along_x) REQUIRE(made == along_x[0]);
    for (const auto& made : along_y) REQUIRE(made == along_y[0]);
  }
}

TEST_CASE("the two passes of an image are sums of the same order") {
  for (int i = 0; i < 100; ++i) {
    const Case c;
    const std::vector<uint8_t> image = bytes(size_t(c.in) * kPixelBytes);
    for (const FloatLoops* loops : sets()) {
      AlignedArray<float> scratch;
      scratch.resize(size_t(c.in) * kFloatScratch);
      std::vector<float> made(size_t(c.count) * kPixelBytes), wide(image.size());
      loops->along_x(image.data(), image.size(), 1, c.table.view(), made.data(), made.size(), scratch.data());
      loops->widen(image.data(), static_cast<int>(image.size()), wide.data());
      for (int x = 0; x < c.count; ++x) {
        float pixel[kPixelBytes];
        loops->along_y(&wide[size_t(c.table.start[x]) * kPixelBytes], kPixelBytes, c.table.view(), x, kPixelBytes,
                       pixel);
        REQUIRE(std::equal(pixel, pixel + kPixelBytes, &made[size_t(x) * kPixelBytes]));
      }
    }
  }
}

TEST_CASE("four products are rounded, the rest of a window is fused with the sum") {
  const float third = 1.0f / 3;  // 255 * third rounds down, so that a fused sum differs
  int different = 0;
  for (const FloatLoops* loops : sets()) {
    for (int taps = 1; taps < 12; ++taps) {
      const std::vector<float> values(size_t(taps), 251.0f), weights(size_t(taps), third);
      float rounded = 251.0f * third, fused = rounded;
      for (int t = 1; t < taps; ++t) {
        rounded += 251.0f * third;
        fused = t < 1 + (taps - 1) / 4 * 4 ? fused + 251.0f * third : std::fma(251.0f, third, fused);
      }
      CHECK(column(*loops, values, weights, false) == rounded);
      CHECK(column(*loops, values, weights, true) == fused);
      different += rounded != fused;
    }
  }
  CHECK(different > 0);
}

TEST_CASE("floats become bytes: clamped, halves to the even one") {
  const std::vector<float> values = {-3.0f, -0.5f, 0.5f, 1.5f, 2.5f, 2.5000002f, 254.5f, 255.4f, 300.0f};
  const std::vector<uint8_t> expected = {0, 0, 0, 2, 2, 3, 254, 255, 255};
  for (const FloatLoops* loops : sets()) {
    std::vector<uint8_t> made(values.size());
    loops->narrow(values.data(), static_cast<int>(values.size()), made.data());
    CHECK(made == expected);
  }
}
