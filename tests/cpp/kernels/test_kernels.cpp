// Every instruction set gives the bytes of the scalar loops, and writes nowhere else.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/base/geometry.h"
#include "core/kernels/resize/kernels.h"

namespace {

using namespace headrace;

constexpr uint8_t kUntouched = 0xA5;
constexpr Filter kFilters[] = {Filter::kNearest, Filter::kLanczos, Filter::kBilinear,
                               Filter::kBicubic, Filter::kBox,     Filter::kHamming};

std::mt19937 random_numbers(20240817);

int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_numbers); }

/// Rows in a heap block that ends with the slack of the last row, so that a sanitizer reports a read beyond it.
struct Rows {
  size_t stride;
  std::vector<uint8_t> bytes;

  Rows(int rows, int row_bytes, int gap = 0) : stride(size_t(row_bytes + gap)) {
    bytes.resize(stride * size_t(rows - 1) + size_t(row_bytes) + kRowSlack);
    bytes.shrink_to_fit();
    const bool contrast = between(0, 2) == 0;  // black and white make the negative lobes overshoot
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(contrast ? between(0, 1) * 255 : between(0, 255));
  }
  const uint8_t* data() const { return bytes.data(); }
};

struct TableCase {
  int in, out, first, count;
  Filter filter;
  ResampleTable table;

  TableCase() {
    out = between(1, 130);
    switch (between(0, 3)) {
      case 0:  // like most crops
        in = std::max(1, static_cast<int>(out * std::uniform_real_distribution<>(0.3, 2.5)(random_numbers)));
        break;
      case 1:
        in = between(1, 20);
        break;
      case 2:
        in = between(1, 300);
        break;
      default:
        in = between(1, 3000);
    }
    first = between(0, out - 1);
    count = between(1, out - first);
    filter = kFilters[between(0, 5)];
    table.build(in, out, filter, first, count);
  }
};

std::vector<const Kernels*> faster_sets() {
  std::vector<const Kernels*> sets;
  for (const char* name : {"avx2", "avx512", "neon"}) {
    if (const Kernels* set = kernels_named(name)) sets.push_back(set);
  }
  return sets;
}

const Kernels& scalar() { return *kernels_named("scalar"); }

}  // namespace

TEST_CASE("digits put together are the weights") {
  for (int i = 0; i < 300; ++i) {
    const TableCase c;
    const size_t groups = size_t(c.table.taps_stride) / 4;
    for (size_t out = 0; out < size_t(c.table.count); ++out) {
      for (size_t tap = 0; tap < size_t(c.table.taps_stride); ++tap) {
        const auto digit = [&](size_t d) {
          const size_t group = out / kTableBlock * groups + tap / 4;
          return int{c.table.digits[((group * 3 + d) * kTableBlock + out % kTableBlock) * 4 + tap % 4]};
        };
        REQUIRE(digit(2) * 65536 + digit(1) * 256 + digit(0) == c.table.weight[out * c.table.taps_stride + tap]);
      }
    }
  }
}

TEST_CASE("source_span is what the table reads") {
  for (int i = 0; i < 300; ++i) {
    const TableCase c;
    const Span span = source_span(c.in, c.out, c.filter, c.first, c.count);
    CHECK(span.begin == c.table.span().begin);
    CHECK(span.end == c.table.span().end);
    ResampleTable shifted;
    shifted.build(c.in, c.out, c.filter, c.first, c.count, span.begin);
    CHECK(shifted.span().begin == 0);
    CHECK(shifted.span().end == span.size());
  }
}

TEST_CASE("pixels of three bytes to four") {  // memory of exactly their size: ASan notices a byte too many
  for (const Kernels* set : faster_sets()) {
    for (int pixels = 1; pixels < 100; ++pixels) {
      CAPTURE(set->name);
      CAPTURE(pixels);
      std::vector<uint8_t> rgb(size_t(pixels) * 3), got(size_t(pixels) * kPixelBytes), want = got;
      for (uint8_t& byte : rgb) byte = static_cast<uint8_t>(between(0, 255));
      set->rgb_to_rgbx(rgb.data(), pixels, got.data());
      scalar().rgb_to_rgbx(rgb.data(), pixels, want.data());
      CHECK(got == want);
      for (int x = 0; x < pixels; ++x) {
        for (int c = 0; c < kPixelBytes; ++c) {
          REQUIRE(int{want[size_t(x * kPixelBytes + c)]} == (c == 3 ? 0 : int{rgb[size_t(x * 3 + c)]}));
        }
      }
    }
  }
}

TEST_CASE("horizontal pass") {
  for (const Kernels* set : faster_sets()) {
    for (int i = 0; i < 1500; ++i) {
      const TableCase c;
      CAPTURE(set->name);
      CAPTURE(c.in);
      CAPTURE(c.out);
      CAPTURE(c.first);
      CAPTURE(c.count);
      CAPTURE(static_cast<int>(c.filter));
      const int rows = between(1, 9), width = c.table.count;
      const int plane_stride = i % 2 ? (width + kTableBlock - 1) / kTableBlock * kTableBlock : 0;
      const int row_bytes = plane_stride ? 3 * plane_stride : width * kPixelBytes;
      const Rows in(rows, c.table.span().end * kPixelBytes, between(0, 9));
      const size_t stride = size_t(row_bytes + between(0, 40));
      std::vector<uint8_t> got(stride * size_t(rows), kUntouched), want = got;
      set->resample_x(in.data(), in.stride, rows, c.table.view(), got.data(), stride, plane_stride);
      scalar().resample_x(in.data(), in.stride, rows, c.table.view(), want.data(), stride, plane_stride);
      for (int y = 0; y < rows; ++y) {
        const uint8_t *g = &got[size_t(y) * stride], *w = &want[size_t(y) * stride];
        for (int x = 0; x < width; ++x) {
          for (int channel = 0; channel < 3; ++channel) {
            const int at = plane_stride ? channel * plane_stride + x : x * kPixelBytes + channel;
            REQUIRE(int{g[at]} == int{w[at]});
          }
        }
        for (size_t j = size_t(row_bytes); j < stride; ++j) REQUIRE(g[j] == kUntouched);
      }
    }
  }
}

TEST_CASE("vertical pass") {
  for (const Kernels* set : faster_sets()) {
    for (int i = 0; i < 600; ++i) {
      const TableCase c;
      const int index = between(0, c.table.count - 1), bytes = between(1, 400);
      CAPTURE(set->name);
      CAPTURE(c.in);
      CAPTURE(c.out);
      CAPTURE(index);
      CAPTURE(bytes);
      const Rows in(c.table.taps[size_t(index)], bytes, between(0, 9));
      std::vector<uint8_t> got(size_t(bytes) + 100, kUntouched), want = got;
      set->resample_y(in.data(), in.stride, c.table.view(), index, bytes, got.data());
      scalar().resample_y(in.data(), in.stride, c.table.view(), index, bytes, want.data());
      REQUIRE(got == want);
    }
  }
}

TEST_CASE("store") {
  for (const Kernels* set : faster_sets()) {
    for (int i = 0; i < 3000; ++i) {
      const int width = i % 3 ? between(1, 130) : between(1, 700);
      const int element = 1 << between(0, 2), channels = between(0, 1) ? 3 : 1;
      const int plane_stride = between(0, 1) ? (width + kTableBlock - 1) / kTableBlock * kTableBlock : 0;
      const bool mirror = between(0, 1) != 0;
      const int layout = between(0, 2);  // planar, interleaved, neither
      CAPTURE(set->name);
      CAPTURE(width);
      CAPTURE(element);
      CAPTURE(channels);
      CAPTURE(plane_stride);
      CAPTURE(mirror);
      CAPTURE(layout);
      alignas(64) uint8_t entries[kMaxLutBytes], planes[kMaxLutBytes];
      for (uint8_t& b : entries) b = static_cast<uint8_t>(between(0, 255));
      Lut lut{element, channels, entries, planes};
      split_lut(lut, planes);
      const Rows row(1, plane_stride ? 3 * plane_stride : width * kPixelBytes);

      RowTarget target;
      const ptrdiff_t gap = between(0, 3) * element;
      target.pixel_stride = layout == 0 ? element : layout == 1 ? channels * element : (channels + 1) * element;
      target.channel_stride = layout == 0 ? width * element + gap : element;
      const size_t size = size_t(width) * size_t(channels + 1) * size_t(element) + 200;
      std::vector<uint8_t> got(size, kUntouched), want = got;
      const ptrdiff_t lead = 64 + between(0, 20) * element;
      target.base = got.data() + lead;
      set->store(row.data(), plane_stride, width, mirror, lut, target);
      target.base = want.data() + lead;
      scalar().store(row.data(), plane_stride, width, mirror, lut, target);
      REQUIRE(got == want);
    }
  }
}

TEST_CASE("a set this machine lacks, or no set at all") {
  CHECK(kernels_named("scalar") != nullptr);
  CHECK(kernels_named("sse9") == nullptr);
  CHECK(kernels().name != nullptr);
}
