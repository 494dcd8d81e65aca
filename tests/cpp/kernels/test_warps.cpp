// Warps: every path stays inside its images, simple maps are known, and a warp inside a plan is the warp of the image.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/row_buffer.h"
#include "core/fuse/fuse.h"
#include "core/warp/warper.h"
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
    made.push_back(packed(pixels[i], pixels[i + 1], pixels[i + 2]));
  }
  return made;
}

std::vector<uint32_t> warped(const Warp& warp, const std::vector<uint8_t>& image, Size in) {
  std::vector<uint8_t> to(size_t(warp.out.width) * size_t(warp.out.height) * kPixelBytes);
  run_warp(warp, image.data(), in, to.data());
  return colours(to);
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

TEST_CASE("any coefficients stay inside the images") {
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
    CHECK(warped(warp, maker.image(in), in).size() == size_t(out.width * out.height));
  }
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
    stage.take.box = {0, 0, in.width, in.height};
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
    run_warp(plan.warps[0], inverted.data(), in, made.data());
    for (uint8_t& byte : made) byte = static_cast<uint8_t>(255 - byte);
    Plan rest;
    rest.last = plan.last;
    Sample expected(size, 1, 3, true, entries.data()), got(size, 1, 3, true, entries.data());
    fuser.run(rest, made.data(), size_t(out.width) * kPixelBytes, out, expected.output);
    fuser.run(plan, image.data(), size_t(in.width) * kPixelBytes, in, got.output);
    CHECK(got.bytes == expected.bytes);
  }
}
