// Products are fused with sums where Pillow's compiled code does so, and nowhere else. See Note [Pillow's sums].
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "core/base/pixel_math.h"
#include "core/kernels/resize/kernels.h"

using namespace headrace;

namespace {

constexpr const char* kSets[] = {"scalar", "avx2", "avx512", "neon"};

/// No compiler fuses what goes through memory.
float rounded_twice(float a, float b, float c) {
  volatile float product = b * c;
  return a + product;
}

struct Terms {
  float a, b, c;
};

/// Sums that differ in how often they are rounded.
std::vector<Terms> telling_terms() {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> unit(0.0F, 1.0F);
  std::vector<Terms> found;
  while (found.size() < 200) {
    const Terms t{255 * unit(random), unit(random), static_cast<float>(random() % 256)};
    if (rounded_twice(t.a, t.b, t.c) != std::fma(t.b, t.c, t.a)) found.push_back(t);
  }
  return found;
}

#if defined(__aarch64__)
constexpr bool kRoundedOnce = true;
#else
constexpr bool kRoundedOnce = false;
#endif

}  // namespace

TEST_CASE("a sum of Pillow's C is rounded once on Arm, and twice elsewhere") {
  for (const Terms& t : telling_terms()) {
    CHECK(pillow_sum(t.a, t.b, t.c) == (kRoundedOnce ? std::fma(t.b, t.c, t.a) : rounded_twice(t.a, t.b, t.c)));
  }
  // 0.1 * 0.1 in doubles, of which only a fused sum keeps the part after the last bit.
  CHECK((pillow_sum(-0.010000000000000002, 0.1, 0.1) != 0.0) == kRoundedOnce);
}

TEST_CASE("PIL.Image.blend at the factors where this shows") {
  // Factors next to a quotient of whole numbers: the blended byte is that number, or one less.
  int telling = 0;
  const auto check = [&telling](int from, int difference, float factor) {
    const auto start = static_cast<float>(from), distance = static_cast<float>(difference);
    const int once = static_cast<int>(std::fma(factor, distance, start));
    const int twice = static_cast<int>(rounded_twice(start, factor, distance));
    if (once == twice) return;
    ++telling;
    for (const char* name : kSets) {
      const Kernels* set = kernels_named(name);
      if (set == nullptr) continue;
      std::array<uint8_t, 1> bytes{static_cast<uint8_t>(from)};
      const std::array<uint8_t, 1> others{static_cast<uint8_t>(from + difference)};
      set->effects->blend(others.data(), 1, factor, bytes.data());
      REQUIRE(bytes[0] == clamp_to_byte(kRoundedOnce ? once : twice));
    }
  };
  for (int difference = -100; difference <= 155; ++difference) {
    for (int whole = 1; whole < 256 && difference != 0; ++whole) {
      const auto near = static_cast<float>(whole) / static_cast<float>(difference);
      for (const float factor : {std::nextafter(near, 0.0F), near, std::nextafter(near, 9.0F)})
        check(100, difference, factor);
    }
  }
  CHECK(telling > 1000);
}

TEST_CASE("sums of numpy and torch are never fused") {
  for (const char* name : kSets) {
    const Kernels* set = kernels_named(name);
    if (set == nullptr) continue;
    CAPTURE(name);
    for (const Terms& t : telling_terms()) {
      constexpr size_t kCount = 37;  // whole vectors, and a rest
      const float expected = rounded_twice(t.a, t.b, t.c);
      std::array<float, kCount> sums;
      sums.fill(t.a);
      std::array<uint8_t, kCount> bytes;
      bytes.fill(static_cast<uint8_t>(t.c));
      set->effects->add_weighted(bytes.data(), kCount, t.b, sums.data());
      for (const float sum : sums) REQUIRE(sum == expected);
      // MixUp: t.c * share + 1 * rest
      std::array<float, kCount> own, other;
      own.fill(t.c);
      other.fill(1.0F);
      set->mixing->with[static_cast<int>(MixType::kFloat32)](own.data(), other.data(), kCount, {t.b, double{t.a}});
      for (const float mixed : own) REQUIRE(mixed == expected);
    }
  }
}
