// Texture channels: images whose channels are known, and every instruction set against the scalar one.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "core/kernels/resize/kernels.h"
#include "core/kernels/textures/texture_scratch.h"
#include "support/plan_samples.h"
#include "textures/texture_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

constexpr float kUntouched = -77;

/// Channels as planes, made where no other plane, row or element follows closely.
struct Made {
  Made(Size size, const std::vector<uint8_t>& image, const Kernels& set, const std::array<double, 4>& bands = kBands)
      : size(size), elements(static_cast<size_t>(kTextureChannels * (size.height + 1) * (size.width + 1)), kUntouched) {
    const Texture texture(size, tables(size), bands);
    TextureScratch scratch(size);
    std::memcpy(scratch.pixels(), image.data(), image.size());
    constexpr ptrdiff_t kElement = sizeof(float);
    const ptrdiff_t row = kElement * (size.width + 1);
    set.make_texture(texture.view(), scratch.view(),
                     {reinterpret_cast<uint8_t*>(elements.data()), row * (size.height + 1), row, kElement});
  }
  float at(int channel, int y, int x) const {
    return elements[static_cast<size_t>((channel * (size.height + 1) + y) * (size.width + 1) + x)];
  }
  /// Whether nothing after a row or plane was written.
  bool tidy() const {
    bool clean = true;
    for (int c = 0; c < kTextureChannels; ++c) {
      for (int y = 0; y < size.height; ++y) clean = clean && at(c, y, size.width) == kUntouched;
      for (int x = 0; x <= size.width; ++x) clean = clean && at(c, size.height, x) == kUntouched;
    }
    return clean;
  }

  Size size;
  std::vector<float> elements;
};

template <class Value>
std::vector<uint8_t> image_of(Size size, Value value) {
  std::vector<uint8_t> made;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < kPixelBytes; ++c) made.push_back(static_cast<uint8_t>(value(x, y, c)));
    }
  }
  return made;
}

const Kernels& scalar() { return *kernels_named("scalar"); }

}  // namespace

TEST_CASE("an image of one colour has no gradient and no frequency") {
  for (const Size size : {Size{24, 10}, Size{7, 7}, Size{1, 1}, Size{13, 2}}) {
    const Made made(size, image_of(size, [](int, int, int) { return 255; }), scalar());
    CHECK(made.tidy());
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        CHECK(made.at(0, y, x) == 1);
        CHECK(made.at(3, y, x) == doctest::Approx(1));  // white
        CHECK(std::abs(made.at(4, y, x)) < 2e-5);       // the white of the matrix is D65 to four digits
        CHECK(made.at(6, y, x) == 0);
        CHECK(made.at(7, y, x) == 0);
        CHECK(std::abs(made.at(11, y, x)) < 1e-15);
        CHECK(std::abs(made.at(12, y, x)) < 1e-15);
      }
    }
  }
}

TEST_CASE("a wave is in the band of its frequency alone, and a ramp has one gradient") {
  constexpr Size kSize{48, 40};
  const auto wave = [](int period) {
    return [period](int x, int, int) { return x % period < period / 2 ? 200 : 100; };
  };
  const Made fast(kSize, image_of(kSize, wave(2)), scalar(), {0.01, 0.4, 0.4, 0.6});  // 1 / 2 cycle a pixel
  for (int x = 0; x < kSize.width; ++x) {
    CHECK(std::abs(fast.at(11, 5, x)) < 1e-15);
    CHECK(fast.at(12, 5, x) == doctest::Approx((x % 2 == 0 ? 50 : -50) / 255.0));
  }
  const Made slow(kSize, image_of(kSize, wave(16)), scalar(), {0.06, 0.065, 0.4, 0.6});  // its first harmonic, 1 / 16
  for (int x = 0; x < kSize.width; ++x) {
    double first = 0;
    for (int i = 0; i < 16; ++i) {
      first += (i < 8 ? 200 : 100) / 255.0 * std::cos(2 * std::numbers::pi * (i - x) / 16) / 8;
    }
    CHECK(slow.at(11, 9, x) == doctest::Approx(first));
  }
  const Made ramp(kSize, image_of(kSize, [](int, int y, int) { return 4 * y; }), scalar());
  CHECK(ramp.at(6, 20, 20) == 0);
  CHECK(ramp.at(7, 20, 20) == doctest::Approx(8 / 255.0));
  CHECK(ramp.at(7, 0, 20) == doctest::Approx(4 / 255.0));  // the edge is repeated
}

TEST_CASE("two bands of everything are the luma, at any size") {
  PlanMaker maker(5);
  for (const Size size : {Size{1, 1}, Size{2, 3}, Size{9, 1}, Size{1, 12}, Size{35, 66}, Size{53, 22}, Size{64, 17}}) {
    const auto image = image_of(size, [&](int, int, int) { return maker.between(0, 255); });
    for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
      const Kernels* set = kernels_named(name);
      if (set == nullptr) continue;
      const Made made(size, image, *set, {0, 1, 0, 1});
      for (int y = 0; y < size.height; ++y) {
        for (int x = 0; x < size.width; ++x) {
          const uint8_t* pixel = &image[static_cast<size_t>((y * size.width + x) * kPixelBytes)];
          const double luma = (0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]) / 255;
          CHECK(std::abs(made.at(11, y, x) - luma) < 1e-7);
          CHECK(std::abs(made.at(12, y, x) - luma) < 1e-7);
        }
      }
    }
  }
}

TEST_CASE("the sets make the same bytes") {
  PlanMaker maker(6);
  for (int i = 0; i < 40; ++i) {
    const Size size{maker.between(1, 70), maker.between(1, 70)};
    const auto image = image_of(size, [&](int, int, int) { return maker.between(0, 255); });
    const Made truth(size, image, scalar());
    CHECK(truth.tidy());
    for (const char* name : {"avx2", "avx512", "neon"}) {
      const Kernels* set = kernels_named(name);
      if (set == nullptr) continue;
      const Made made(size, image, *set);
      CHECK(std::memcmp(made.elements.data(), truth.elements.data(), truth.elements.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("tables of another size are refused") {
  CHECK_THROWS_AS(Texture({5, 4}, tables({4, 5}), kBands), std::invalid_argument);
  CHECK_THROWS_AS(Texture({0, 4}, tables({0, 4}), kBands), std::invalid_argument);
}
