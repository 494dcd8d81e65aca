// Warps: the sets of loops agree, every path stays inside its images, simple maps are known, and a warp inside a plan
// is the warp of the image.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/row_buffer.h"
#include "core/fuse/fuse.h"
#include "core/kernels/resize/kernels.h"
#include "core/kernels/warp/warp_math.h"
#include "core/kernels/warp/warp_reach.h"
#include "support/plan_samples.h"

namespace {

using namespace headrace;
using namespace headrace::test;

PlanMaker maker(23);

constexpr uint32_t kFill = 0x00030201;
constexpr Filter kFilters[] = {Filter::kNearest, Filter::kBilinear, Filter::kBicubic};

Warp affine(const std::array<double, 6>& matrix, Filter filter, Size out) {
  Warp warp;
  warp.filter = filter;
  std::copy(matrix.begin(), matrix.end(), warp.a);
  warp.fill = kFill;
  warp.out = out;
  return warp;
}

std::vector<uint32_t> colours(const std::vector<uint8_t>& pixels) {
  std::vector<uint32_t> made;
  for (size_t i = 0; i < pixels.size(); i += kPixelBytes) {
    made.push_back(pack_rgbx(pixels[i], pixels[i + 1], pixels[i + 2]));
  }
  return made;
}

std::vector<uint32_t> warped(const Warp& warp, const std::vector<uint8_t>& image, Size in) {
  std::vector<uint8_t> to(size_t(warp.out.width) * size_t(warp.out.height) * kPixelBytes);
  kernels().run_warp(warp_job(warp), image.data(), in, whole_image(warp.out), to.data());
  return colours(to);
}

Box any_window(Size of) {
  const int x = maker.between(0, of.width - 1), y = maker.between(0, of.height - 1);
  return {x, y, maker.between(1, of.width - x), maker.between(1, of.height - y)};
}

/// The image with every pixel outside a box changed.
std::vector<uint8_t> spoilt(const std::vector<uint8_t>& image, Size size, Box kept) {
  std::vector<uint8_t> made = image;
  for (size_t i = 0; i < made.size(); ++i) {
    const int pixel = static_cast<int>(i / kPixelBytes), x = pixel % size.width - kept.x,
              y = pixel / size.width - kept.y;
    if (x < 0 || y < 0 || x >= kept.width || y >= kept.height) made[i] = static_cast<uint8_t>(~made[i]);
  }
  return made;
}

/// Whether all sets make the same bytes, those that are ignored too, and write no others: of the whole, and of a window
/// from nothing but what warp_reach names.
bool sets_agree(const Warp& warp, const std::vector<uint8_t>& image, Size in) {
  constexpr size_t kGap = 24;
  const std::vector<uint8_t> untouched(size_t(warp.out.width) * size_t(warp.out.height) * kPixelBytes + 2 * kGap, 0xA5);
  std::vector<uint8_t> expected = untouched;
  const WarpJob job = warp_job(warp);
  const Size out = warp.out;
  const Box window = any_window(out);
  kernels_named("scalar")->run_warp(job, image.data(), in, whole_image(out), expected.data() + kGap);
  std::vector<uint8_t> part = untouched;
  for (int y = window.y; y < window.y + window.height; ++y) {
    const size_t at = kGap + (size_t(y) * size_t(out.width) + size_t(window.x)) * kPixelBytes;
    std::copy_n(expected.data() + at, size_t(window.width) * kPixelBytes, part.data() + at);
  }
  const std::vector<uint8_t> read = spoilt(image, in, warp_reach(job, in, window));
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    const Kernels* set = kernels_named(name);
    if (!set) continue;
    std::vector<uint8_t> got = untouched;
    set->run_warp(job, image.data(), in, whole_image(out), got.data() + kGap);
    if (got != expected) return false;
    got = untouched;
    set->run_warp(job, read.data(), in, window, got.data() + kGap);
    if (got != part) return false;
  }
  return true;
}

/// A map like those of policies, one with positions on the borders between pixels, or any.
Warp any_warp(Size in, Size out) {
  const auto real = [](double limit) { return maker.between(-1000000, 1000000) * limit / 1e6; };
  const double angle = real(3.2), c = std::cos(angle), s = std::sin(angle), x = in.width / 2.0, y = in.height / 2.0;
  std::array<double, 6> matrix{};
  switch (maker.between(0, 5)) {
    case 0:
      matrix = {c, s, x - c * x - s * y, -s, c, y + s * x - c * y};
      break;
    case 1:  // scale alone
      matrix = {real(2), 0, real(in.width), -0.0, real(2), real(in.height)};
      break;
    case 2:  // a shift
      matrix = {1, 0, double(maker.between(-5, 5)), 0, 1, double(maker.between(-5, 5))};
      break;
    case 3:
      for (double& a : matrix) a = maker.between(-4, 4) / 2.0;
      break;
    case 4:  // a shear
      matrix = {1, real(1), 0, 0, 1, 0};
      break;
    default:
      matrix = {real(2), real(2), real(in.width), real(2), real(2), real(in.height)};
  }
  Warp warp = affine(matrix, kFilters[maker.between(0, 2)], out);
  warp.perspective = maker.between(0, 3) == 0;
  warp.a[6] = real(2.0 / out.width);
  warp.a[7] = real(2.0 / out.height);
  return warp;
}

}  // namespace

TEST_CASE("known maps: the image itself, a shift, a turn, nothing but the fill") {
  for (const Filter filter : kFilters) {
    for (const Size in : {Size{1, 1}, Size{7, 5}, Size{3, 40}}) {
      const std::vector<uint8_t> image = maker.image(in);
      const std::vector<uint32_t> before = colours(image);
      const auto at = [&](int x, int y) { return before[size_t(y * in.width + x)]; };
      CHECK(warped(affine({1, 0, 0, 0, 1, 0}, filter, in), image, in) == before);
      const std::vector<uint32_t> shifted = warped(affine({1, 0, 1, 0, 1, 0}, filter, in), image, in);
      for (int y = 0; y < in.height; ++y) {
        for (int x = 0; x < in.width; ++x) {
          CHECK(shifted[size_t(y * in.width + x)] == (x + 1 < in.width ? at(x + 1, y) : kFill));
        }
      }
      const double width = in.width;
      const std::vector<uint32_t> turned =
          warped(affine({0, -1, width, 1, 0, 0}, filter, {in.height, in.width}), image, in);
      for (int y = 0; y < in.width; ++y) {
        for (int x = 0; x < in.height; ++x) {
          CHECK(turned[size_t(y * in.height + x)] == at(in.width - 1 - y, x));
        }
      }
      for (const uint32_t pixel : warped(affine({1, 0, -50, 0, 1, 0}, filter, in), image, in)) CHECK(pixel == kFill);
    }
  }
}

TEST_CASE("the path of an affine map with the nearest filter") {
  const auto path = [](const std::array<double, 6>& matrix, Size out) {
    return warp_job(affine(matrix, Filter::kNearest, out)).path;
  };
  CHECK(path({2, 0, 1, 0, 3, 1}, {9, 9}) == WarpPath::kAddedUp);
  CHECK(path({1, 0, 1, -0.0, 1, 1}, {9, 9}) == WarpPath::kAddedUp);
  CHECK(path({1, 0.1, 0, 0, 1, 0}, {9, 9}) == WarpPath::kFixed);
  CHECK(path({1, 0.1, 0, 0, 1, 0}, {32767, 9}) == WarpPath::kFixed);
  CHECK(path({1, 0.1, 0, 0, 1, 0}, {32767, 10}) == WarpPath::kAddedUp);  // a corner at 32768
  CHECK(path({1, 0.1, 32768, 0, 1, 0}, {9, 9}) == WarpPath::kAddedUp);
  CHECK(path({NAN, 0.1, 0, 0, 1, 0}, {9, 9}) == WarpPath::kAddedUp);
  CHECK(warp_job(affine({1, 0, 0, 0, 1, 0}, Filter::kBilinear, {9, 9})).path == WarpPath::kEachPixel);
}

TEST_CASE("the sets agree on small images, and on those that are longer than a block of outputs") {
  for (int i = 0; i < 6000; ++i) {
    const Size in{maker.between(1, 40), maker.between(1, 40)};
    const Size out = maker.coin() ? in : Size{maker.between(1, 100), maker.between(1, 20)};
    CHECK(sets_agree(any_warp(in, out), maker.image(in), in));
  }
}

TEST_CASE("the sets agree on images of extreme shapes") {
  for (const Size in : {Size{1, 700}, {700, 1}, {2, 333}, {333, 3}, {4000, 2}, {2, 4000}, {33000, 1}}) {
    const std::vector<uint8_t> image = maker.image(in);
    for (int i = 0; i < 60; ++i) CHECK(sets_agree(any_warp(in, in), image, in));
  }
}

TEST_CASE("the sets agree where the numbers of fixed point overflow within a row") {
  // The step is rounded up: after 32767 of them the position has passed 32768, which no corner reaches.
  const Size in{32769, 2}, out{32767, 2};
  const std::vector<uint8_t> image = maker.image(in);
  for (const double sign : {1.0, -1.0}) {
    const Warp right = affine({sign * 0.6 / 65536, 1e-9, sign * 32767.6, 0, 1, 0}, Filter::kNearest, out);
    CHECK(warp_job(right).path == WarpPath::kFixed);
    CHECK(sets_agree(right, image, in));
  }
  const Size tall{2, 32769};
  const Warp down = affine({1, 0, 0, 0.6 / 65536, 1e-9, 32767.6}, Filter::kNearest, out);
  CHECK(warp_job(down).path == WarpPath::kFixed);
  CHECK(sets_agree(down, maker.image(tall), tall));
}

TEST_CASE("the sets agree on any coefficients, and stay inside the images") {
  const double special[] = {0.0,         -0.0,          0.5,  -1.0,  32767.9,
                            65536.0,     -2147483648.0, 1e19, 1e300, std::numeric_limits<double>::infinity(),
                            std::nan("")};
  for (int i = 0; i < 4000; ++i) {
    const Size in{maker.between(1, 9), maker.between(1, 9)}, out{maker.between(1, 9), maker.between(1, 9)};
    Warp warp = affine({}, kFilters[maker.between(0, 2)], out);
    warp.perspective = maker.coin();
    for (double& a : warp.a) {
      a = maker.between(0, 5) == 0 ? special[maker.between(0, 10)] : maker.between(-4000, 4000) / 1000.0;
    }
    CHECK(sets_agree(warp, maker.image(in), in));
  }
}

TEST_CASE("the part of an image that a warp reads") {
  const auto reach = [](const std::array<double, 6>& matrix, Filter filter, Box window = {0, 0, 100, 80}) {
    return warp_reach(warp_job(affine(matrix, filter, {100, 80})), {100, 80}, window);
  };
  const Box all{0, 0, 100, 80};
  CHECK(reach({1, 0, 0, 0, 1, 0}, Filter::kBicubic) == all);
  CHECK(reach({1, 0, 30, 0, 1, -20}, Filter::kNearest) == Box{30, 0, 70, 60});
  CHECK(reach({0.5, 0, 20, 0, 0.5, 10}, Filter::kNearest) == Box{20, 10, 50, 40});
  CHECK(reach({0.5, 0, 20, 0, 0.5, 10}, Filter::kBilinear) == Box{19, 9, 52, 42});
  CHECK(reach({0.5, 0, 20, 0, 0.5, 10}, Filter::kBicubic) == Box{18, 8, 54, 44});
  CHECK(reach({0.5, 0.1, 20, 0, 0.5, 10}, Filter::kNearest, {10, 10, 1, 20}) == Box{26, 15, 3, 10});
  CHECK(reach({1, 0, 500, 0, 1, 0}, Filter::kBilinear) == Box{0, 0, 1, 80});  // nothing but fill
  CHECK(reach({NAN, 0, 0, 0, 1, 0}, Filter::kBilinear) == all);
  CHECK(reach({1, 0.1, 0, 1e308, 1e308, 0}, Filter::kNearest) == all);

  Warp warp = affine({0.5, 0, 20, 0, 0.5, 10}, Filter::kNearest, {100, 80});
  warp.perspective = true;
  CHECK(warp_reach(warp_job(warp), {100, 80}, all) == Box{19, 9, 52, 42});  // a pixel more along each edge
  warp.a[6] = -1 / 50.0;                                                    // the divisor changes its sign
  CHECK(warp_reach(warp_job(warp), {100, 80}, all) == all);
  CHECK(warp_reach(warp_job(warp), {100, 80}, {0, 0, 10, 10}) == Box{19, 9, 13, 11});
}

TEST_CASE("a warp in a plan, for any chunks of rows: take, resize, warp to another size, take") {
  std::vector<uint8_t> entries(3 * 256);
  for (size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<uint8_t>(i);
  Fuser fuser(kernels());
  for (int i = 0; i < 300; ++i) {
    const Size in{maker.between(1, 20), maker.between(1, 20)}, out{maker.between(1, 20), maker.between(1, 20)};
    const std::vector<uint8_t> image = maker.image(in);
    Plan plan;
    PlanStage stage;
    stage.take.box = whole_image(in);
    stage.resize = in;
    stage.made = out;
    stage.effects = {{Effect::Kind::kInvert}, {Effect::Kind::kWarp, 0, 0}, {Effect::Kind::kInvert}};
    plan.stages.push_back(stage);
    const double x = maker.between(-900, 900) / 300.0, y = maker.between(-900, 900) / 300.0;
    plan.warps.push_back(affine({1, x, -y, y, 1, x}, kFilters[maker.between(0, 2)], out));
    plan.last = maker.take(out, true);
    plan.last.gray = false;
    const Size size = plan.last.box.size();

    std::vector<uint8_t> inverted = image;
    for (uint8_t& byte : inverted) byte = static_cast<uint8_t>(255 - byte);
    std::vector<uint8_t> made(size_t(out.width) * size_t(out.height) * kPixelBytes);
    kernels().run_warp(warp_job(plan.warps[0]), inverted.data(), in, whole_image(out), made.data());
    for (uint8_t& byte : made) byte = static_cast<uint8_t>(255 - byte);
    Plan rest;
    rest.last = plan.last;
    Sample expected(size, 1, 3, true, entries.data()), got(size, 1, 3, true, entries.data());
    fuser.run(rest, made.data(), size_t(out.width) * kPixelBytes, out, expected.output);
    fuser.run(plan, image.data(), size_t(in.width) * kPixelBytes, in, got.output);
    CHECK(got.bytes == expected.bytes);
  }
}
