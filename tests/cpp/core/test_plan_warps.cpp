// Rotations and affine steps as plans: turns that only move pixels, matrices, sizes, and what is refused.
#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/plan/plan.h"

namespace {

using namespace headrace;

Plan plan_of(const Step& step, Size image, const double* draws = nullptr, int columns = 0, bool varies = false) {
  Recipe recipe;
  recipe.steps.push_back(step);
  recipe.draws = columns;
  recipe.output = varies ? Size{} : image;
  return resolve(recipe, draws, image);
}

Plan rotated(double angle, double cosine, double sine, Size image, bool expand = false) {
  Step step;
  step.kind = Step::Kind::kRandomRotate;
  step.expand = expand;
  step.filter = Filter::kBicubic;
  const double draws[] = {angle, angle, cosine, sine};
  return plan_of(step, image, draws, 4, expand);
}

}  // namespace

TEST_CASE("turns by quarters") {
  CHECK(rotated(0, 1, 0, {4, 6}).stages.empty());
  const Plan half = rotated(180, -1, 0, {4, 6});
  CHECK(half.stages.empty());
  CHECK((half.last.flip_horizontal && half.last.flip_vertical));

  const Plan square = rotated(90, 0, -1, {5, 5});
  REQUIRE(square.warps.size() == 1);
  CHECK(square.warps[0].filter == Filter::kNearest);
  CHECK(square.warps[0].a[1] == -1);
  CHECK(square.warps[0].a[2] == 5);
  CHECK(rotated(90, 0, -1, {4, 6}).warps[0].filter == Filter::kBicubic);  // Pillow warps it

  const Plan expanded = rotated(270, 0, 1, {4, 6}, true);
  CHECK(expanded.warps[0].filter == Filter::kNearest);
  CHECK(expanded.warps[0].out == Size{6, 4});
  CHECK(expanded.stages.back().made_size() == Size{6, 4});
  CHECK(expanded.last.box == Box{0, 0, 6, 4});
}

TEST_CASE("a rotation keeps the centre, or holds the whole image") {
  const double c = std::sqrt(0.5);
  const Warp kept = rotated(315, c, c, {10, 20}).warps[0];
  CHECK(kept.out == Size{10, 20});
  CHECK(kept.a[0] * 5 + kept.a[1] * 10 + kept.a[2] == doctest::Approx(5));
  CHECK(kept.a[3] * 5 + kept.a[4] * 10 + kept.a[5] == doctest::Approx(10));
  CHECK(rotated(315, c, c, {10, 20}, true).warps[0].out == Size{22, 22});
}

TEST_CASE("flips that wait are done before a warp, and effects after it join its stage") {
  Step flip, affine, invert;
  flip.kind = Step::Kind::kHorizontalFlip;
  flip.p = 1;
  affine.kind = Step::Kind::kAffine;
  affine.matrix = {1, 0.5, 0, 0, 1, 0};
  invert.kind = Step::Kind::kEffect;
  invert.effect = Effect::Kind::kInvert;
  Recipe recipe;
  recipe.steps = {flip, affine, invert, flip};
  recipe.draws = 1;
  recipe.output = {8, 8};
  const double draw = 0;
  const Plan plan = resolve(recipe, &draw, {8, 8});
  REQUIRE(plan.stages.size() == 1);
  CHECK(plan.stages[0].take.flip_horizontal);
  CHECK(plan.stages[0].effects.size() == 2);
  CHECK(plan.last.flip_horizontal);
}

TEST_CASE("a shift is rounded to whole pixels, halves to the even one") {
  Step step;
  step.kind = Step::Kind::kRandomAffine;
  for (const auto& [share, pixels] : {std::pair{0.25, 2.0}, {0.35, 4.0}, {-0.25, -2.0}, {0.04, 0.0}}) {
    const double draws[] = {0, share, 0, 1, 0, 0, 1, 0, 0, 1};
    CHECK(plan_of(step, {10, 10}, draws, 10).warps[0].a[2] == -pixels);
  }
}

TEST_CASE("a perspective without a solution, and an image too large, are refused") {
  Step step;
  step.kind = Step::Kind::kRandomPerspective;
  double draws[16] = {};
  draws[8] = NAN;
  CHECK_THROWS_WITH_AS(plan_of(step, {9, 9}, draws, 16), doctest::Contains("onto one line"), Error);
  CHECK_THROWS_AS(rotated(45, 1, 1e9, {1000, 1000}, true), Error);
}
