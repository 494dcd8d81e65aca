// Plans against numbers computed by hand: rounding, padding, flips composed with crops, the order of the passes.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"

using namespace headrace;
using Kind = Step::Kind;
using Fill = std::array<uint8_t, 3>;

namespace {

Step center_crop(int height, int width) { return {.kind = Kind::kCenterCrop, .height = height, .width = width}; }
Step resize(int height, int width) { return {.kind = Kind::kResize, .height = height, .width = width}; }
Step shorter(int size, int max_size = 0) {
  return {.kind = Kind::kResizeShorter, .shorter = size, .max_size = max_size};
}
Step horizontal_flip(int draw, double p = 0.5) { return {.kind = Kind::kHorizontalFlip, .p = p, .draw = draw}; }
Step vertical_flip(int draw, double p = 0.5) { return {.kind = Kind::kVerticalFlip, .p = p, .draw = draw}; }
Step grayscale() { return {.kind = Kind::kGrayscale}; }
Step random_crop(int height, int width, int draw, std::array<int, 4> padding = {}, Fill fill = {}) {
  return {.kind = Kind::kRandomCrop, .height = height, .width = width, .padding = padding, .fill = fill, .draw = draw};
}
Step random_resized_crop(int size, double min_ratio = 3.0 / 4, double max_ratio = 4.0 / 3) {
  return {
      .kind = Kind::kRandomResizedCrop, .height = size, .width = size, .min_ratio = min_ratio, .max_ratio = max_ratio};
}

Plan plan_of(std::vector<Step> steps, Size image, Size output, std::vector<double> draws = {},
             PassOrder order = PassOrder::kHorizontalFirst) {
  const Recipe recipe{std::move(steps), static_cast<int>(draws.size()), output, order};
  return resolve(recipe, draws.data(), image);
}

std::string reason_of(std::vector<Step> steps, Size image, Size output, std::vector<double> draws = {}) {
  try {
    plan_of(std::move(steps), image, output, std::move(draws));
  } catch (const Error& error) {
    CHECK(error.stage() == Stage::kPlan);
    return error.what();
  }
  return "";
}

/// Draws of one RandomResizedCrop: (fraction, ratio) of the tries, the last repeated up to ten; then top, left.
std::vector<double> tries(std::vector<std::pair<double, double>> pairs, double top, double left) {
  pairs.resize(10, pairs.back());
  std::vector<double> draws;
  for (const auto& [fraction, ratio] : pairs) draws.insert(draws.end(), {fraction, ratio});
  draws.insert(draws.end(), {top, left});
  return draws;
}

Box crop_of(const Step& step, Size image, std::vector<double> draws) {
  const Size output{step.width, step.height};
  const Plan plan = plan_of({step}, image, output, std::move(draws));
  if (plan.stages.empty()) return plan.last.box;
  REQUIRE(plan.stages.size() == 1);
  CHECK(plan.stages[0].resize == output);
  CHECK(plan.last == Take{.box = whole_image(output)});
  return plan.stages[0].take.box;
}

}  // namespace

TEST_CASE("evaluation recipe: the shorter edge, then the centre") {
  const Plan wide = plan_of({shorter(256), center_crop(224, 224)}, {500, 375}, {224, 224});
  REQUIRE(wide.stages.size() == 1);
  CHECK(wide.stages[0].take == Take{.box = {0, 0, 500, 375}});
  CHECK(wide.stages[0].resize == Size{341, 256});       // 256 * 500 / 375 = 341.33
  CHECK(wide.last == Take{.box = {58, 16, 224, 224}});  // 58.5 goes to the even 58

  const Plan tall = plan_of({shorter(256), center_crop(224, 224)}, {375, 500}, {224, 224});
  CHECK(tall.stages[0].resize == Size{256, 341});
  CHECK(tall.last.box == Box{16, 58, 224, 224});
}

TEST_CASE("centre crop rounds halves to the even number") {
  const auto left = [](int width) { return plan_of({center_crop(2, 2)}, {width, 2}, {2, 2}).last.box.x; };
  CHECK(left(2) == 0);
  CHECK(left(3) == 0);  // 0.5
  CHECK(left(4) == 1);
  CHECK(left(5) == 2);  // 1.5
  CHECK(left(7) == 2);  // 2.5
  CHECK(left(9) == 4);  // 3.5
}

TEST_CASE("centre crop pads a small image, with the odd pixel right and below") {
  CHECK(plan_of({center_crop(5, 6)}, {3, 4}, {6, 5}).last == Take{.box = {-1, 0, 6, 5}});
  CHECK(plan_of({center_crop(6, 4)}, {10, 3}, {4, 6}).last == Take{.box = {3, -1, 4, 6}});
  CHECK(plan_of({center_crop(9, 9)}, {1, 1}, {9, 9}).last == Take{.box = {-4, -4, 9, 9}});
}

TEST_CASE("centre crop with the other rules: halves towards zero, or down") {
  const auto left = [](CenterRule rule, int width, int crop) {
    Step step = center_crop(1, crop);
    step.center_rule = rule;
    return plan_of({step}, {width, 1}, {crop, 1}).last.box.x;
  };
  for (const CenterRule rule : {CenterRule::kTowardsZero, CenterRule::kDown}) {
    CHECK(left(rule, 5, 5) == 0);
    CHECK(left(rule, 5, 2) == 1);  // 1.5
    CHECK(left(rule, 6, 2) == 2);
    CHECK(left(rule, 9, 2) == 3);   // 3.5
    CHECK(left(rule, 2, 6) == -2);  // padded by 2 on both sides
  }
  CHECK(left(CenterRule::kTowardsZero, 2, 5) == -1);  // the odd pixel of the padding right
  CHECK(left(CenterRule::kDown, 2, 5) == -2);         // or left
}

TEST_CASE("centre crop pads with its fill") {
  Step step = center_crop(5, 6);
  step.fill = {7, 8, 9};
  CHECK(plan_of({step}, {4, 3}, {6, 5}).last == Take{.box = {-1, -1, 6, 5}, .fill = {7, 8, 9}});
  CHECK(plan_of({step}, {8, 7}, {6, 5}).last == Take{.box = {1, 1, 6, 5}});
}

TEST_CASE("a resize that keeps the ratio: by the longer edge, the shorter one, or between") {
  const auto size = [](double longest, Size image) {
    const Step step{.kind = Kind::kResizeKeepRatio, .height = 20, .width = 30, .longest = longest};
    return resolve({{step}, 0, {}}, nullptr, image).last.box.size();
  };
  CHECK(size(1, {60, 30}) == Size{30, 15});
  CHECK(size(0, {60, 30}) == Size{40, 20});
  CHECK(size(0.5, {60, 30}) == Size{34, 17});  // / 1.75: 34.29, 17.14
  CHECK(size(1, {30, 45}) == Size{13, 20});    // / 2.25: 13.33
  CHECK(size(1, {4, 16}) == Size{5, 20});
  CHECK(size(1, {5, 40}) == Size{2, 20});  // 2.5 to the even 2
  CHECK(size(1, {7, 40}) == Size{4, 20});  // 3.5 to the even 4
  const Step thin{.kind = Kind::kResizeKeepRatio, .height = 20, .width = 20, .longest = 1};
  CHECK(reason_of({thin}, {1, 100}, {1, 1}) == "height and width must be > 0");
}

TEST_CASE("the shorter edge and the largest size of the longer") {
  const auto size = [](Step step, Size image, Size expected) {
    const Plan plan = plan_of({step}, image, expected);
    return plan.stages.empty() || plan.stages[0].resize == expected;
  };
  CHECK(size(shorter(256, 300), {500, 250}, {300, 150}));  // 512 is too long: 300 * 256 / 512
  CHECK(size(shorter(256, 513), {500, 250}, {512, 256}));
  CHECK(size(shorter(0, 100), {500, 375}, {100, 75}));  // no size: the longer edge becomes 100
  CHECK(size(shorter(0, 100), {375, 500}, {75, 100}));
  CHECK(size(shorter(7), {5, 5}, {7, 7}));
  CHECK(size(shorter(2), {3, 8}, {2, 5}));  // 5.33
  CHECK(reason_of({shorter(0, 1)}, {500, 100}, {1, 1}) == "height and width must be > 0");
}

TEST_CASE("a resize to the size that is there already is none") {
  CHECK(plan_of({resize(6, 8)}, {8, 6}, {8, 6}).stages.empty());
  CHECK(plan_of({shorter(6)}, {8, 6}, {8, 6}).stages.empty());
  CHECK(plan_of({resize(7, 8)}, {8, 6}, {8, 7}).stages.size() == 1);
}

TEST_CASE("random crop, padded on each side") {
  // 1 + 8 + 3 by 2 + 6 + 4: 8 positions each way.
  const Plan plan = plan_of({random_crop(5, 5, 0, {1, 2, 3, 4}, {9, 8, 7})}, {8, 6}, {5, 5}, {0.5, 0.99});
  CHECK(plan.stages.empty());
  CHECK(plan.last == Take{.box = {6, 2, 5, 5}, .fill = {9, 8, 7}});  // top 4 - 2, left 7 - 1
}

TEST_CASE("random crop pads a small image on both sides if asked to, and refuses it otherwise") {
  Step step = random_crop(5, 6, 0);
  CHECK(reason_of({step}, {3, 4}, {6, 5}, {0, 0}) ==
        "Required crop size (5, 6) is larger than input image size (4, 3); RandomCrop's pad_if_needed=True pads such "
        "images");
  step.pad_if_needed = true;
  CHECK(plan_of({step}, {3, 4}, {6, 5}, {0.9, 0.0}).last.box == Box{-3, 0, 6, 5});  // 9 by 6 when padded
  CHECK(plan_of({step}, {3, 4}, {6, 5}, {0.0, 0.9}).last.box == Box{0, -1, 6, 5});
  CHECK(plan_of({step}, {30, 40}, {6, 5}, {0.0, 0.0}).last == Take{.box = {0, 0, 6, 5}});
}

TEST_CASE("a draw just below one takes the last position") {
  const double last = 1.0 - 0x1p-53;
  CHECK(plan_of({random_crop(2, 2, 0)}, {1'000'001, 1000}, {2, 2}, {last, last}).last.box == Box{999'999, 998, 2, 2});
}

TEST_CASE("a flip is drawn below p") {
  const auto flipped = [](double p, double draw) {
    return plan_of({horizontal_flip(0, p)}, {3, 3}, {3, 3}, {draw}).last.flip_horizontal;
  };
  CHECK(flipped(0.5, 0.49));
  CHECK_FALSE(flipped(0.5, 0.5));
  CHECK_FALSE(flipped(0.0, 0.0));
  CHECK(flipped(1.0, 1.0 - 0x1p-53));
}

TEST_CASE("a crop after a flip is taken from the other side") {
  // Seen by the user at top 1, left 1: 3 wide, 2 high, of 8 by 6.
  const std::vector<double> draws{0.1, 0.1, 1.0 / 5, 1.0 / 6};
  const auto take = [&](std::vector<Step> flips) {
    flips.push_back(random_crop(2, 3, 2));
    return plan_of(std::move(flips), {8, 6}, {3, 2}, draws).last;
  };
  CHECK(take({}) == Take{.box = {1, 1, 3, 2}});
  CHECK(take({horizontal_flip(0)}) == Take{.box = {4, 1, 3, 2}, .flip_horizontal = true});
  CHECK(take({vertical_flip(1)}) == Take{.box = {1, 3, 3, 2}, .flip_vertical = true});
  CHECK(take({horizontal_flip(0), vertical_flip(1)}) ==
        Take{.box = {4, 3, 3, 2}, .flip_horizontal = true, .flip_vertical = true});
  CHECK(take({horizontal_flip(0), horizontal_flip(1)}) == Take{.box = {1, 1, 3, 2}});
}

TEST_CASE("padding after a flip is on the other side too") {
  // Padded by 2, cropped at the left end: two columns of padding and two of the image, whose left is the source's
  // right.
  const Plan plan = plan_of({horizontal_flip(0), random_crop(4, 4, 1, {2, 2, 2, 2})}, {4, 4}, {4, 4}, {0, 0.5, 0});
  CHECK(plan.last == Take{.box = {2, 0, 4, 4}, .flip_horizontal = true});
}

TEST_CASE("a flip before a resize belongs to its stage, one after it to the end") {
  const Plan plan = plan_of({horizontal_flip(0), resize(4, 4), vertical_flip(0)}, {8, 8}, {4, 4}, {0});
  REQUIRE(plan.stages.size() == 1);
  CHECK(plan.stages[0].take == Take{.box = {0, 0, 8, 8}, .flip_horizontal = true});
  CHECK(plan.last == Take{.box = {0, 0, 4, 4}, .flip_vertical = true});
}

TEST_CASE("crops of crops are one crop") {
  const Plan plan = plan_of({center_crop(6, 8), center_crop(2, 4)}, {10, 10}, {4, 2});
  CHECK(plan.stages.empty());
  CHECK(plan.last == Take{.box = {3, 4, 4, 2}});
}

TEST_CASE("padding around a crop hides the source's own pixels there") {
  const Plan plan = plan_of({center_crop(4, 4), random_crop(6, 6, 0, {1, 1, 1, 1})}, {10, 10}, {6, 6}, {0, 0});
  REQUIRE(plan.stages.size() == 1);
  CHECK(plan.stages[0].take == Take{.box = {3, 3, 4, 4}});
  CHECK(plan.stages[0].resize == Size{4, 4});
  CHECK(plan.last == Take{.box = {-1, -1, 6, 6}});
}

TEST_CASE("gray turns the padding gray, and padding of a gray image keeps its colour") {
  const Fill red{255, 0, 0}, gray{76, 76, 76};  // (255 * 19595 + 32768) >> 16
  const Step crop = random_crop(6, 6, 0, {1, 1, 1, 1}, red);
  const Plan before = plan_of({crop, grayscale()}, {4, 4}, {6, 6}, {0, 0});
  CHECK(before.stages.empty());
  CHECK(before.last == Take{.box = {-1, -1, 6, 6}, .gray = true, .fill = gray});

  const Plan after = plan_of({grayscale(), crop}, {4, 4}, {6, 6}, {0, 0});
  REQUIRE(after.stages.size() == 1);
  CHECK(after.stages[0].take == Take{.box = {0, 0, 4, 4}, .gray = true});
  CHECK(after.last == Take{.box = {-1, -1, 6, 6}, .fill = red});

  const Step gray_crop = random_crop(6, 6, 0, {1, 1, 1, 1}, gray);
  const Plan together = plan_of({grayscale(), gray_crop}, {4, 4}, {6, 6}, {0, 0});
  CHECK(together.stages.empty());
  CHECK(together.last == Take{.box = {-1, -1, 6, 6}, .gray = true, .fill = gray});
}

TEST_CASE("random resized crop: area, ratio and place") {
  const Step step = random_resized_crop(224);
  CHECK(crop_of(step, {100, 100}, tries({{0.25, 1.0}}, 0.5, 0.999)) == Box{50, 25, 50, 50});
  // The first try is 141 wide; the second 50 by 100.
  CHECK(crop_of(step, {100, 100}, tries({{1.0, 2.0}, {0.5, 0.5}}, 0, 0)) == Box{0, 0, 50, 100});
  // Only the tenth fits.
  std::vector<std::pair<double, double>> late(9, {1.0, 2.0});
  late.emplace_back(0.01, 1.0);
  CHECK(crop_of(step, {100, 100}, tries(late, 0, 0)) == Box{0, 0, 10, 10});
}

TEST_CASE("random resized crop rounds halves to the even number") {
  const Step step = random_resized_crop(4);
  CHECK(crop_of(step, {5, 5}, tries({{0.25, 1.0}}, 0, 0)) == Box{0, 0, 2, 2});  // 2.5
  CHECK(crop_of(step, {7, 7}, tries({{0.25, 1.0}}, 0, 0)) == Box{0, 0, 4, 4});  // 3.5
}

TEST_CASE("random resized crop falls back to the middle, within the ratios") {
  const Step step = random_resized_crop(224);
  CHECK(crop_of(step, {100, 10}, tries({{1.0, 1.0}}, 0, 0)) == Box{43, 0, 13, 10});  // 10 * 4/3
  CHECK(crop_of(step, {10, 100}, tries({{1.0, 1.0}}, 0, 0)) == Box{0, 43, 10, 13});  // 10 / (3/4)
  CHECK(crop_of(step, {12, 10}, tries({{2.0, 1.0}}, 0, 0)) == Box{0, 0, 12, 10});    // within: the whole
  CHECK(crop_of(step, {12, 10}, tries({{1e300, 1.0}}, 0, 0)) == Box{0, 0, 12, 10});  // more pixels than an int holds
  CHECK(crop_of(step, {12, 10}, tries({{1e-9, 1.0}}, 0, 0)) == Box{0, 0, 12, 10});   // rounds to no pixel
}

TEST_CASE("a crop that rounding left nothing of is black, as Pillow makes it") {
  const Plan plan = plan_of({random_resized_crop(8, 3, 4)}, {1, 9}, {8, 8}, tries({{0.5, 3.5}}, 0, 0));
  REQUIRE(plan.stages.size() == 1);
  const Take& take = plan.stages[0].take;
  CHECK_FALSE(take.box.inside({1, 9}));
  CHECK(take.box.x + take.box.width <= 0);
  CHECK(take.fill == Fill{0, 0, 0});
}

TEST_CASE("a random resized crop after a flip is taken from the other side") {
  Step step = random_resized_crop(224);
  step.draw = 1;
  std::vector<double> draws = tries({{0.25, 1.0}}, 0, 0);
  draws.insert(draws.begin(), 0.0);
  const Plan plan = plan_of({horizontal_flip(0), step}, {100, 100}, {224, 224}, draws);
  CHECK(plan.stages[0].take == Take{.box = {50, 0, 50, 50}, .flip_horizontal = true});
}

TEST_CASE("where one pass alone does it, there is no order") {
  const auto vertical_first = [](PassOrder order, Size in, Size out) {
    return plan_of({resize(out.height, out.width)}, in, out, {}, order).stages.at(0).vertical_first;
  };
  for (const PassOrder order : {PassOrder::kHorizontalFirst, PassOrder::kTallSplit, PassOrder::kByReduction}) {
    CHECK_FALSE(vertical_first(order, {2, 900}, {2, 10}));
    CHECK_FALSE(vertical_first(order, {900, 2}, {10, 2}));
  }
}

TEST_CASE("the order of the passes, by version of Pillow") {
  const auto vertical_first = [](PassOrder order, Size in, Size out) {
    return plan_of({resize(out.height, out.width)}, in, out, {}, order).stages.at(0).vertical_first;
  };
  CHECK_FALSE(vertical_first(PassOrder::kHorizontalFirst, {2, 900}, {1, 1}));

  CHECK(vertical_first(PassOrder::kTallSplit, {2, 201}, {1, 100}));
  CHECK_FALSE(vertical_first(PassOrder::kTallSplit, {2, 200}, {1, 100}));  // not over 100 times as high as wide
  CHECK_FALSE(vertical_first(PassOrder::kTallSplit, {2, 201}, {1, 300}));  // gets taller
  CHECK(vertical_first(PassOrder::kTallSplit, {2, 201}, {9, 200}));

  CHECK_FALSE(vertical_first(PassOrder::kByReduction, {100, 100}, {50, 50}));
  CHECK(vertical_first(PassOrder::kByReduction, {100, 100}, {90, 79}));        // 21 rows > 2 * 10 columns
  CHECK_FALSE(vertical_first(PassOrder::kByReduction, {100, 100}, {90, 80}));  // 20 are not
  CHECK(vertical_first(PassOrder::kByReduction, {100, 100}, {150, 99}));       // wider, a row less
  CHECK_FALSE(vertical_first(PassOrder::kByReduction, {100, 100}, {300, 150}));
}

TEST_CASE("the order of the passes is that of the crop, not of the image") {
  const Plan plan =
      plan_of({center_crop(100, 100), resize(79, 90)}, {1000, 100}, {90, 79}, {}, PassOrder::kByReduction);
  CHECK(plan.stages.at(0).vertical_first);
}

TEST_CASE("a size that the batch does not hold is refused, and so is an image without pixels") {
  CHECK(reason_of({resize(5, 4)}, {8, 8}, {4, 4}) ==
        "the transforms made (5, 4) pixels (height, width) where the batch holds (4, 4)");
  CHECK(reason_of({}, {8, 8}, {4, 4}) ==
        "the transforms made (8, 8) pixels (height, width) where the batch holds (4, 4)");
  CHECK(reason_of({resize(5, 4)}, {0, 8}, {4, 5}) == "the image has no pixels");
}

TEST_CASE("what no memory holds is refused, whatever the numbers add up to") {
  constexpr int kFar = 1 << 30, kMost = 1 << 28;
  const std::string words =
      "an image of (2147483653, 2147483654) pixels (height, width) is too large: at most 268435456 "
      "pixels along an edge are supported; use less padding, or resize";
  CHECK(reason_of({{.kind = Kind::kPad, .padding = {kFar, kFar, kFar, kFar}}}, {6, 5}, {1, 1}) == words);
  CHECK(reason_of({random_crop(4, 4, 0, {kFar, kFar, kFar, kFar})}, {6, 5}, {4, 4}, {0, 0}) == words);
  Step needed = random_crop(4, kMost, 0);
  needed.pad_if_needed = true;
  CHECK(reason_of({needed}, {6, 5}, {kMost, 4}, {0, 0}).starts_with("an image of (1, 536870906) pixels"));
  CHECK(
      reason_of({center_crop(2, kMost + 1)}, {6, 5}, {kMost + 1, 2}).starts_with("an image of (2, 268435457) pixels"));
  CHECK(reason_of({shorter(60'000)}, {1, 60'000}, {1, 1}).starts_with("an image of (1000000000, 60000) pixels"));
  CHECK(reason_of({}, {kMost + 1, 1}, {kMost + 1, 1}).starts_with("an image of (1, 268435457) pixels"));
  const Step million{.kind = Kind::kPad, .padding = {1'000'000, 1'000'000, 1'000'000, 1'000'000}};
  CHECK(plan_of({million, center_crop(8, 8)}, {6, 6}, {8, 8}).last.box == Box{-1, -1, 8, 8});
}

TEST_CASE("a recipe without steps is the image as it is") {
  const Plan plan = plan_of({}, {8, 6}, {8, 6});
  CHECK(plan.stages.empty());
  CHECK(plan.last == Take{.box = {0, 0, 8, 6}});
}
