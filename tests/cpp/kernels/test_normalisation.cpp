// Tables of ToTensor and Normalize are recognised by their entries, and the arithmetic in their place is exact.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/base/geometry.h"
#include "core/kernels/resize/kernels.h"
#include "core/kernels/resize/normalisation.h"

using namespace headrace;

namespace {

constexpr uint8_t kUntouched = 0xA5;

/// What torch does: three steps, each rounded to float32.
struct Table {
  alignas(64) float entries[3][256];
  alignas(64) uint8_t planes[kMaxLutBytes];

  Table(const float (&mean)[3], const float (&deviation)[3]) {
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 256; ++i) entries[c][i] = (static_cast<float>(i) / 255.0F - mean[c]) / deviation[c];
    }
    split_lut(lut(), planes);
  }
  Lut lut() const { return {4, 3, entries, planes}; }
};

struct Constants {
  float mean[3], deviation[3];
};

constexpr Constants kKnown[] = {
    {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}},                                     // ImageNet
    {{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}},                                                 // Inception
    {{0.0F, 0.0F, 0.0F}, {1.0F, 1.0F, 1.0F}},                                                 // ToTensor alone
    {{0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}},        // CLIP
    {{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}},                               // CIFAR-10
    {{0.0F, 0.5F, -3.0F}, {1.0F / 255, -2.0F, 7.0F}},                                         // odd ones
    {{123.675F / 255, 116.28F / 255, 103.53F / 255}, {58.395F / 255, 57.12F / 255, 0.225F}},  // as in detection models
};

std::mt19937 random_numbers(20261122);

int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_numbers); }

}  // namespace

TEST_CASE("normalisations are found") {
  for (const Constants& one : kKnown) {
    CAPTURE(one.mean[0]);
    CHECK(find_normalisation(Table(one.mean, one.deviation).entries));
  }
  std::uniform_real_distribution<float> mean(-0.5F, 1.5F), deviation(0.01F, 2.0F);
  int found = 0;
  for (int i = 0; i < 200; ++i) {
    const auto m = [&] { return mean(random_numbers); };
    const auto d = [&] { return deviation(random_numbers); };
    found += find_normalisation(Table({m(), m(), m()}, {d(), d(), d()}).entries).has_value();
  }
  CHECK(found == 200);
}

TEST_CASE("and nothing else is") {
  const auto is_none = [](const Table& table) { return !find_normalisation(table.entries); };
  const Constants& usual = kKnown[0];
  for (const int byte : {0, 1, 100, 254, 255}) {
    CAPTURE(byte);
    Table table(usual.mean, usual.deviation);
    float& entry = table.entries[between(0, 2)][byte];
    entry = std::nextafter(entry, 9.0F);
    CHECK(is_none(table));
  }
  Table negative_zero({0, 0, 0}, {1, 1, 1});
  negative_zero.entries[1][0] = -0.0F;
  CHECK(is_none(negative_zero));
  CHECK(is_none(Table({0.5F, 0.5F, 0.5F}, {0.5F, 0.0F, 0.5F})));  // infinite
  CHECK(is_none(Table({0.5F, 0.5F, 0.5F}, {0.5F, std::numeric_limits<float>::quiet_NaN(), 0.5F})));
  Table constant(usual.mean, usual.deviation);
  for (float& entry : constant.entries[2]) entry = 0.25F;
  CHECK(is_none(constant));
}

TEST_CASE("what is computed is what the table holds, and nothing is written elsewhere") {
  for (const char* name : {"avx2", "avx512", "neon"}) {
    const Kernels* set = kernels_named(name);
    if (set == nullptr) continue;
    for (int i = 0; i < 3000; ++i) {
      const Constants& one = kKnown[between(0, std::size(kKnown) - 1)];
      const Table table(one.mean, one.deviation);
      const auto normalisation = find_normalisation(table.entries);
      REQUIRE(normalisation);
      Lut lut = table.lut();
      lut.normalisation = &*normalisation;
      const int width = i % 3 ? between(1, 40) : between(1, 300), layout = between(0, 3);
      const bool mirror = between(0, 1) != 0;
      const int plane_stride = layout == 3 ? (width + kTableBlock - 1) / kTableBlock * kTableBlock : 0;
      CAPTURE(name);
      CAPTURE(width);
      CAPTURE(layout);
      CAPTURE(mirror);
      std::vector<uint8_t> row(static_cast<size_t>(plane_stride ? 3 * plane_stride : width * kPixelBytes) + kRowSlack);
      for (uint8_t& byte : row) byte = static_cast<uint8_t>(between(0, 255));
      RowTarget target;
      target.pixel_stride = layout == 1 ? 12 : layout == 2 ? 16 : 4;
      target.channel_stride = layout == 0 || layout == 3 ? width * 4 + between(0, 3) * 4 : 4;
      std::vector<uint8_t> got(static_cast<size_t>(width) * 16 + 200, kUntouched), want = got;
      target.base = got.data() + 64;
      set->store(row.data(), plane_stride, width, mirror, lut, target);
      target.base = want.data() + 64;
      kernels_named("scalar")->store(row.data(), plane_stride, width, mirror, table.lut(), target);
      REQUIRE(got == want);
    }
  }
}
