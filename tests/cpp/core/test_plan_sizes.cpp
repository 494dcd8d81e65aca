// Plans of corner crops and of steps that draw their size or padding, against numbers computed by hand.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"

using namespace headrace;
using Kind = Step::Kind;

namespace {

Plan plan_of(const Step& step, Size image, std::vector<double> draws = {}) {
  const Recipe recipe{{step}, static_cast<int>(draws.size()), {}};  // an output of any size
  return resolve(recipe, draws.data(), image);
}

Box window_of(const Step& step, Size image, std::vector<double> draws = {}) {
  return plan_of(step, image, std::move(draws)).last.box;
}

Size size_of(const Step& step, Size image, std::vector<double> draws = {}) {
  return window_of(step, image, std::move(draws)).size();
}

std::string reason_of(const Step& step, Size image, std::vector<double> draws = {}) {
  try {
    plan_of(step, image, std::move(draws));
  } catch (const Error& error) {
    CHECK(error.stage() == Stage::kPlan);
    return error.what();
  }
  return "";
}

constexpr double kLast = 1 - 0x1p-53;  // the largest draw

}  // namespace

TEST_CASE("the four corners, up to the whole image") {
  const auto corner = [](bool bottom, bool right) {
    return Step{.kind = Kind::kCornerCrop, .height = 20, .width = 30, .at_bottom = bottom, .at_right = right};
  };
  CHECK(window_of(corner(false, false), {100, 50}) == Box{0, 0, 30, 20});
  CHECK(window_of(corner(false, true), {100, 50}) == Box{70, 0, 30, 20});
  CHECK(window_of(corner(true, false), {100, 50}) == Box{0, 30, 30, 20});
  CHECK(window_of(corner(true, true), {100, 50}) == Box{70, 30, 30, 20});
  CHECK(window_of(corner(true, true), {30, 20}) == Box{0, 0, 30, 20});
  CHECK(reason_of(corner(false, false), {29, 50}) == "Requested crop size (20, 30) is bigger than input size (50, 29)");
  CHECK(reason_of(corner(false, false), {100, 19}) != "");
}

TEST_CASE("a corner of a mirrored image") {
  const Recipe recipe{
      {{.kind = Kind::kHorizontalFlip, .p = 1}, {.kind = Kind::kCornerCrop, .height = 2, .width = 3, .at_right = true}},
      1,
      {3, 2}};
  const double draw = 0;
  const Plan plan = resolve(recipe, &draw, {10, 5});
  CHECK(plan.last == Take{.box = {0, 0, 3, 2}, .flip_horizontal = true});
}

TEST_CASE("a drawn shorter edge is below its limit") {
  const Step step{.kind = Kind::kRandomResize, .shorter = 10, .max_size = 13};
  CHECK(size_of(step, {40, 20}, {0}) == Size{20, 10});
  CHECK(size_of(step, {40, 20}, {0.34}) == Size{22, 11});
  CHECK(size_of(step, {20, 50}, {kLast}) == Size{12, 30});
}

TEST_CASE("a factor is rounded before the edges are cut") {
  const auto step = [](int size, int most = 0) {
    return Step{.kind = Kind::kScaleShorter, .shorter = size, .max_size = most};
  };
  CHECK(size_of(step(10), {40, 20}) == Size{20, 10});
  CHECK(size_of(step(10, 15), {40, 20}) == Size{15, 7});
  CHECK(size_of(step(15), {11, 20}).width == 14);  // 11 * (15 / 11) = 14.999999999999998
  CHECK(reason_of(step(1, 1), {1, 200}) == "height and width must be > 0");
}

TEST_CASE("a share of the largest size that fits") {
  const Step step{.kind = Kind::kScaleJitter, .height = 30, .width = 100};
  CHECK(size_of(step, {50, 60}, {1.0}) == Size{25, 30});
  CHECK(size_of(step, {50, 10}, {0.5}) == Size{50, 10});
  CHECK(reason_of(step, {50, 60}, {0.01}) == "height and width must be > 0");
  CHECK(reason_of(step, {50, 60}, {1e300}).find("too large") != std::string::npos);
}

TEST_CASE("whole patches within a budget") {
  const auto step = [](int least, int most) {
    return Step{.kind = Kind::kFitPatches, .patch = 10, .least_patches = least, .most_patches = most};
  };
  CHECK(size_of(step(1, 100), {44, 86}) == Size{40, 90});
  CHECK(size_of(step(1, 100), {45, 55}) == Size{40, 60});      // halves go to the even number
  CHECK(size_of(step(1, 12), {80, 60}) == Size{40, 30});       // 48 patches, both edges halved
  CHECK(size_of(step(1, 11), {80, 60}) == Size{30, 20});       // and cut
  CHECK(size_of(step(24, 100), {15, 25}) == Size{40, 70});     // 4 patches, upwards
  CHECK(size_of(step(1, 64), {10'000, 10}) == Size{640, 10});  // smart_resize makes 252
  CHECK(size_of(step(4, 4), {3, 3}) == Size{20, 20});
  CHECK(size_of(step(1, 1), {900, 1}) == Size{10, 10});
}

TEST_CASE("zooming out pads left and above by shares of the padding") {
  const Step step{.kind = Kind::kZoomOut};
  CHECK(window_of(step, {11, 7}, {1.0, 0.9, 0.9}) == Box{0, 0, 11, 7});
  CHECK(window_of(step, {11, 7}, {2.5, 0.5, kLast}) == Box{-8, -9, 27, 17});
  CHECK(plan_of({.kind = Kind::kZoomOut, .fill = {1, 2, 3}}, {11, 7}, {2, 0, 0}).last.fill ==
        std::array<uint8_t, 3>{1, 2, 3});
}

TEST_CASE("padding to at least a size, at every place") {
  const Step step{.kind = Kind::kRandomPad, .height = 10, .width = 12};
  CHECK(window_of(step, {20, 30}, {0.5, 0.5}) == Box{0, 0, 20, 30});
  CHECK(window_of(step, {9, 30}, {0, 0}) == Box{0, 0, 12, 30});
  CHECK(window_of(step, {9, 6}, {kLast, kLast}) == Box{-3, -4, 12, 10});
}

TEST_CASE("along each edge a crop or a padding") {
  const Step step{.kind = Kind::kRandomCropOrPad, .height = 10, .width = 12};
  CHECK(window_of(step, {20, 6}, {0, 0}) == Box{0, 0, 12, 10});
  CHECK(window_of(step, {20, 6}, {kLast, kLast}) == Box{8, -4, 12, 10});
  CHECK(window_of(step, {12, 10}, {kLast, kLast}) == Box{0, 0, 12, 10});
}

TEST_CASE("a kept ratio times a scale and an aspect ratio") {
  Step step{.kind = Kind::kRandomKeepRatio, .height = 20, .width = 20, .longest = 1, .p = 0.5, .aspect_p = 0.5};
  CHECK(size_of(step, {80, 40}, {0.5, 2, 0.5, 4}) == Size{20, 10});
  CHECK(size_of(step, {80, 40}, {0.4, 2, 0.5, 4}) == Size{40, 20});
  CHECK(size_of(step, {80, 40}, {0.5, 2, 0.4, 4}) == Size{40, 5});
  step.of_area = true;
  CHECK(size_of(step, {80, 40}, {0.4, 0.25, 0.4, 4}) == Size{80, 10});
}
