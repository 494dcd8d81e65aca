// How effects, nested steps and erased boxes are resolved: what stays pending, what is materialised, in which order.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"

using namespace headrace;
using Kind = Step::Kind;
using Does = Effect::Kind;

namespace {

Step of(Does effect, int draw = 0) { return {.kind = Kind::kEffect, .effect = effect, .draw = draw}; }
Step constant(Does effect, double parameter) {
  return {.kind = Kind::kEffect, .effect = effect, .draw = kConstant, .parameter = parameter};
}
const Step gray{.kind = Kind::kGrayscale};
Step flip(int draw) { return {.kind = Kind::kHorizontalFlip, .p = 0.5, .draw = draw}; }
Step resize(int height, int width) { return {.kind = Kind::kResize, .height = height, .width = width}; }
Step when(double p, int draw, std::vector<Step> steps) {
  return {.kind = Kind::kWhen, .p = p, .draw = draw, .branches = {std::move(steps)}};
}
Step erase(int draw, int value = 0) { return {.kind = Kind::kErase, .p = 0.5, .draw = draw, .value = value}; }

Plan plan_of(std::vector<Step> steps, Size image, Size output, std::vector<double> draws) {
  const Recipe recipe{std::move(steps), static_cast<int>(draws.size()), output, PassOrder::kHorizontalFirst};
  return resolve(recipe, draws.data(), image);
}

std::vector<Does> kinds(const Plan& plan) {
  std::vector<Does> all;
  for (const PlanStage& stage : plan.stages) {
    for (const Effect& effect : stage.effects) all.push_back(effect.kind);
  }
  return all;
}

/// Draws of one Erase: whether it is done, ten tries of (fraction, ratio) with the last repeated, then top and left.
std::vector<double> erasing(std::vector<std::pair<double, double>> pairs, double top, double left) {
  pairs.resize(10, pairs.back());
  std::vector<double> draws{0};
  for (const auto& [fraction, ratio] : pairs) draws.insert(draws.end(), {fraction, ratio});
  draws.insert(draws.end(), {top, left});
  return draws;
}

}  // namespace

TEST_CASE("effects belong to the resize before them, and flips stay pending") {
  const Plan plan =
      plan_of({resize(4, 6), flip(0), of(Does::kBrightness, 1), of(Does::kHue, 2)}, {9, 9}, {6, 4}, {0, 1.5, -0.1});
  REQUIRE(plan.stages.size() == 1);
  CHECK(plan.stages[0].effects == std::vector<Effect>{{Does::kBrightness, 1.5f}, {Does::kHue, 0, 231}});  // -25
  CHECK(plan.last == Take{.box = {0, 0, 6, 4}, .flip_horizontal = true});
}

TEST_CASE("without a resize the window is made real, its flips stay pending") {
  const Step crop{.kind = Kind::kCenterCrop, .height = 2, .width = 4};
  const Plan plan = plan_of({crop, flip(0), of(Does::kInvert)}, {8, 8}, {4, 2}, {0});
  REQUIRE(plan.stages.size() == 1);
  CHECK(plan.stages[0].take == Take{.box = {2, 3, 4, 2}});
  CHECK(plan.stages[0].resize == Size{4, 2});
  CHECK(plan.last == Take{.box = {0, 0, 4, 2}, .flip_horizontal = true});
}

TEST_CASE("gray is an effect where another follows, and stays with the take where none does") {
  const Step invert = of(Does::kInvert);
  const Plan between = plan_of({resize(4, 4), invert, when(0.5, 0, {gray}), invert}, {9, 9}, {4, 4}, {0.4});
  CHECK(kinds(between) == std::vector{Does::kInvert, Does::kGray, Does::kInvert});
  CHECK_FALSE(between.last.gray);
  const Plan last = plan_of({resize(4, 4), invert, gray}, {9, 9}, {4, 4}, {});
  CHECK(kinds(last) == std::vector{Does::kInvert});
  CHECK(last.last.gray);
  const Plan first = plan_of({gray, invert}, {4, 4}, {4, 4}, {});
  CHECK(first.stages.at(0).take.gray);
  CHECK(kinds(first) == std::vector{Does::kInvert});
  const Plan drawn_above = plan_of({resize(4, 4), when(0.5, 0, {gray})}, {9, 9}, {4, 4}, {0.5});
  CHECK_FALSE(drawn_above.last.gray);
}

TEST_CASE("padding after an effect, and a crop before the next one") {
  const Step pad{.kind = Kind::kPad, .padding = {1, 2, 3, 4}, .fill = {9, 8, 7}};
  const Plan plan = plan_of({of(Does::kInvert), pad, of(Does::kInvert)}, {5, 6}, {9, 12}, {});
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].take == Take{.box = {0, 0, 5, 6}});
  CHECK(plan.stages[1].take == Take{.box = {-1, -2, 9, 12}, .fill = {9, 8, 7}});
  CHECK(plan.last == Take{.box = {0, 0, 9, 12}});
}

TEST_CASE("posterize keeps the upper bits, solarize begins at the next whole value") {
  const auto amount = [](Step step) { return plan_of({step}, {2, 2}, {2, 2}, {}).stages.at(0).effects.at(0).amount; };
  CHECK(amount(constant(Does::kPosterize, 0)) == 0);
  CHECK(amount(constant(Does::kPosterize, 3)) == 0xE0);
  CHECK(amount(constant(Does::kPosterize, 8)) == 255);
  CHECK(amount(constant(Does::kSolarize, 128)) == 128);
  CHECK(amount(constant(Does::kSolarize, 127.5)) == 128);
  CHECK(amount(constant(Does::kSolarize, -3)) == 0);
  CHECK(amount(constant(Does::kSolarize, 1e9)) == 256);
}

TEST_CASE("a factor is drawn, or the same for all samples") {
  const auto effect = [](Step step) { return plan_of({step}, {2, 2}, {2, 2}, {0.5, 1.75}).stages.at(0).effects.at(0); };
  for (const Does does : {Does::kBrightness, Does::kContrast, Does::kSaturation, Does::kSharpness}) {
    CHECK(effect(of(does, 1)) == Effect{does, 1.75f});
    CHECK(effect(constant(does, 0.25)) == Effect{does, 0.25f});
    CHECK(effect(constant(does, 1e30)) == Effect{does, kMostFactor});
  }
}

TEST_CASE("parameters of tables are drawn, or the same for all samples") {
  const auto amount = [](Step step, double drawn) {
    return plan_of({step}, {2, 2}, {2, 2}, {0.5, drawn}).stages.at(0).effects.at(0).amount;
  };
  const Step posterize = of(Does::kPosterize, 1);
  CHECK(amount(posterize, 2) == 0xC0);
  CHECK(amount(posterize, 0) == 0);
  CHECK(amount(posterize, -0.5) == 0);
  CHECK(amount(posterize, 8) == 255);
  CHECK_THROWS_WITH_AS(amount(posterize, -1), "bits must be between or equal to 1 and 8", Error);
  CHECK(amount(constant(Does::kPosterize, 3), 2) == 0xE0);
  CHECK(amount(of(Does::kSolarize, 1), 127.5) == 128);
  CHECK(amount(of(Does::kSolarize, 1), 300) == 256);
  CHECK(amount(of(Does::kSolarizeAdd, 1), 110) == 110);
  CHECK(amount(of(Does::kSolarizeAdd, 1), 300) == 255);
  const Effect mapped =
      plan_of({{.kind = Kind::kScaleShift, .draw = 0}}, {2, 2}, {2, 2}, {1.5, -20}).stages[0].effects[0];
  CHECK(mapped == Effect{Does::kScaleShift, 1.5f, 0, 0, 0, 0, -20.0f});
  const Step affine{.kind = Kind::kAffine, .draw = 1, .matrix = {1, 0, 0, 0, 1, 0}, .coefficient = 3};
  CHECK(plan_of({affine}, {2, 2}, {2, 2}, {0, 0.25}).warps.at(0).a[3] == 0.25);
}

TEST_CASE("the box of a blur is drawn, or the same for all samples") {
  const auto box = [](Step step) {
    return plan_of({step}, {2, 2}, {2, 2}, {1.5, 2, 300, 40}).stages.at(0).effects.at(0);
  };
  CHECK(box({.kind = Kind::kBoxBlur, .drawn = true}) == Effect{Does::kBoxBlur, 0, 2, 300, 40});
  CHECK(box({.kind = Kind::kBoxBlur, .matrix = {1, 200, 30}}) == Effect{Does::kBoxBlur, 0, 1, 200, 30});
}

TEST_CASE("channels in another order") {
  const Plan plan = plan_of({constant(Does::kPermute, channel_order({2, 0, 1}))}, {2, 2}, {2, 2}, {});
  CHECK(plan.stages.at(0).effects == std::vector<Effect>{{Does::kPermute, 0, 2 | 0 << 2 | 1 << 4}});
}

TEST_CASE("a branch is chosen by the first bound above the draw") {
  const Step one{
      .kind = Kind::kOneOf, .branches = {{of(Does::kInvert)}, {}, {of(Does::kEqualize)}}, .bounds = {0.25, 0.5, 1.0}};
  const auto chosen = [&](double u) { return kinds(plan_of({one}, {2, 2}, {2, 2}, {u})); };
  CHECK(chosen(0.0) == std::vector{Does::kInvert});
  CHECK(chosen(0.25).empty());
  CHECK(chosen(0.5) == std::vector{Does::kEqualize});
  CHECK(chosen(1.0 - 0x1p-53) == std::vector{Does::kEqualize});
}

TEST_CASE("chains are mixed on one real image, by the draws after the step's first") {
  const Step invert = of(Does::kInvert), turn{.kind = Kind::kRotate, .matrix = {180, -1, 0}};
  const Step mix{.kind = Kind::kMixChains, .draw = 1, .branches = {{invert, gray}, {turn}, {}}};
  const Plan plan = plan_of({flip(0), of(Does::kEqualize), mix}, {4, 2}, {4, 2}, {0, 0.5, 0.25, 0.125, 0.75});
  CHECK(plan.stages.back().effects == std::vector<Effect>{{Does::kMixChains, 0, 0}});
  const ChainMix& made = plan.chain_mixes.at(0);
  CHECK(made.chains.at(0) == ChainMix::Chain{0.5f, {{Does::kInvert}, {Does::kGray}}});
  CHECK(made.chains.at(1) == ChainMix::Chain{0.25f, {{Does::kWarp}}});
  CHECK(made.chains.at(2) == ChainMix::Chain{0.125f, {}});
  CHECK((made.factor == 0.75f && !made.blended));
  CHECK(plan.warps.at(0).a[2] == 4);
  for (const Step& moves : {flip(0), mix, Step{.kind = Kind::kResize, .height = 1, .width = 1}}) {
    CAPTURE(static_cast<int>(moves.kind));
    const Step one{.kind = Kind::kMixChains, .draw = 1, .branches = {{moves}}};
    CHECK_THROWS_AS(plan_of({one}, {4, 2}, {4, 2}, {0, 0.5, 0.25, 0.125, 0.75}), Error);
  }
}

TEST_CASE("steps on tensors become effects with torch's roundings of factors, and chains that are summed up") {
  const Step warp{.kind = Kind::kTensorWarp,
                  .filter = Filter::kBilinear,
                  .matrix = {1, 0.1, 2, 0, 1, 3},
                  .first_version = true,
                  .fused_positions = true,
                  .filled = true,
                  .color = {1, 2, 3.5}};
  Step contrast = constant(Does::kTensorContrast, 1.9);
  contrast.fused = contrast.one_channel = true;
  const Step sum{.kind = Kind::kMixChains, .draw = 1, .summed = true, .branches = {{contrast}, {flip(0)}}};
  CHECK_THROWS_AS(plan_of({sum}, {4, 2}, {4, 2}, {0, 0.5, 0.25, 0.125}), Error);
  const Step mix{.kind = Kind::kMixChains, .draw = 1, .summed = true, .branches = {{contrast}, {warp}}};
  const Plan plan = plan_of({mix}, {4, 2}, {4, 2}, {0, 0.5, 0.25, 0.125});
  const ChainMix& made = plan.chain_mixes.at(0);
  CHECK((made.summed && !made.blended && made.factor == 0.125f));
  const Effect one = made.chains.at(0).effects.at(0);
  CHECK((one.kind == Does::kTensorContrast && one.factor == 1.9f && one.rest == float(1.0 - 1.9)));
  CHECK(one.amount == (kFused | kOneChannel));
  const TensorWarp expected{{1, 0.1f, 2, 0, 1, 3}, true, true, true, false, true, {1, 2, 3.5f}};
  CHECK(plan.tensor_warps.at(0) == expected);
}

TEST_CASE("permutations come in the order of itertools") {
  const Step all{.kind = Kind::kShuffled,
                 .branches = {{of(Does::kInvert)}, {of(Does::kEqualize)}, {of(Does::kAutocontrast)}}};
  const auto order = [&](double u) { return kinds(plan_of({all}, {2, 2}, {2, 2}, {u})); };
  const Does a = Does::kInvert, b = Does::kEqualize, c = Does::kAutocontrast;
  const std::vector<std::vector<Does>> orders{{a, b, c}, {a, c, b}, {b, a, c}, {b, c, a}, {c, a, b}, {c, b, a}};
  for (size_t k = 0; k < orders.size(); ++k) CHECK(order((double(k) + 0.5) / 6) == orders[k]);
  CHECK(order(1.0 - 0x1p-53) == orders[5]);
}

TEST_CASE("a box is erased as high over wide as drawn, and mirrored by the flips after it") {
  std::vector<double> draws = erasing({{0.02, 4.0}}, 0.9, 0.25);  // of 100 by 50: 100 pixels, 20 high, 5 wide
  const auto boxes = [&](std::vector<Step> steps) {
    return plan_of(std::move(steps), {100, 50}, {100, 50}, draws).erased;
  };
  CHECK(boxes({erase(0, 2)}) == std::vector<Erased>{{{24, 27, 5, 20}, 2}});  // 0.25 of 96, 0.9 of 31
  CHECK(boxes({flip(0), erase(0)}) == std::vector<Erased>{{{24, 27, 5, 20}, 0}});
  CHECK(boxes({erase(0), flip(0)}) == std::vector<Erased>{{.box = {71, 27, 5, 20}, .flip_horizontal = true}});
  CHECK(boxes({erase(0), {.kind = Kind::kVerticalFlip, .p = 1}}) ==
        std::vector<Erased>{{.box = {24, 3, 5, 20}, .flip_vertical = true}});
  CHECK(boxes({erase(0), erase(0, 1)}).size() == 2);
  draws[0] = 0.5;
  CHECK(boxes({erase(0)}).empty());
}

TEST_CASE("several boxes share the area, and each draws its values") {
  const auto boxes = [](Step step, double count) {
    std::vector<double> draws{0, count};
    for (int i = 0; i < 3; ++i) {
      const std::vector<double> one = erasing({{0.06, 1.0}}, 0, 0.1 * i);
      draws.insert(draws.end(), one.begin() + 1, one.end());
      for (int c = 0; c < step.values; ++c) draws.push_back(0.25 * (c + 1) + 0x1p-53);
    }
    return plan_of({step}, {40, 40}, {40, 40}, draws).erased;
  };
  Step step{.kind = Kind::kErase, .p = 0.5, .value = 2, .boxes = {1, 3}};
  CHECK(boxes(step, 0.0) == std::vector<Erased>{{{0, 0, 10, 10}, 2}});
  CHECK(boxes(step, 0.5) == std::vector<Erased>{{{0, 0, 7, 7}, 2}, {{3, 0, 7, 7}, 2}});
  CHECK(boxes(step, 0.99).size() == 3);
  step.noise = Noise::kChannel;
  step.values = 3;
  const Erased coloured = boxes(step, 0.5).at(1);
  for (int c = 0; c < 3; ++c) CHECK(coloured.levels[c] == 16384 * (c + 1));
  step.noise = Noise::kElement;
  step.values = 1;
  CHECK(boxes(step, 0.5).at(1).state == ((uint64_t{1} << 51) + 1) << 11);
}

TEST_CASE("an element keeps its value where it is flipped to") {
  const Erased plain{.box = {3, 5, 4, 2}, .noise = Noise::kElement, .state = 77};
  Erased flipped = plain;
  flipped.flip_horizontal = flipped.flip_vertical = true;
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 4; ++x) {
        CHECK(erased_row(plain, c, 3 + x, 5 + y) == erased_row(flipped, c, 6 - x, 6 - y));
        CHECK(noise_index(plain, c, 3 + x, 5 + y) == (c * 2 + y) * 4 + x);
      }
    }
  }
}

TEST_CASE("what does not fit is tried again, and nothing is erased where no try fits or nothing is left of the box") {
  const auto boxes = [](std::vector<double> draws) { return plan_of({erase(0)}, {10, 10}, {10, 10}, draws).erased; };
  CHECK(boxes(erasing({{1.0, 1.0}, {0.25, 1.0}}, 0, 0)) == std::vector<Erased>{{{0, 0, 5, 5}, 0}});
  CHECK(boxes(erasing({{1.0, 1.0}}, 0, 0)).empty());
  CHECK(boxes(erasing({{0.001, 1.0}}, 0, 0)).empty());
  CHECK(boxes(erasing({{1e300, 1e-300}}, 0, 0)).empty());
}

TEST_CASE("only flips may follow an erased box") {
  const std::vector<double> draws = erasing({{0.25, 1.0}}, 0, 0);
  CHECK_THROWS_WITH_AS(plan_of({erase(0), of(Does::kInvert)}, {10, 10}, {10, 10}, draws),
                       "only flips can follow RandomErasing; move it to the end", Error);
}
