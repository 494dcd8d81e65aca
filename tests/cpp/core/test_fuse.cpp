// Plans give the same bytes on every instruction set and for any chunks of rows; simple cases are computed by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/row_buffer.h"
#include "core/fuse/fuse.h"
#include "support/plan_samples.h"

namespace {

using namespace headrace;
using namespace headrace::test;

PlanMaker maker(7);

/// Pushes the rows of the plan's box, `step` at a time, from a buffer that is overwritten after each push.
void push_in_steps(Fuser& fuser, const Plan& plan, const std::vector<uint8_t>& image, Size size, const Output& output,
                   int step) {
  const Box box = decode_box(plan, size);
  RowSink& sink = fuser.begin(plan, size, output);
  RowBuffer rows;
  rows.reset(step, box.width * kPixelBytes);
  for (int y = 0; y < box.height; y += step) {
    const int n = std::min(step, box.height - y);
    for (int i = 0; i < n; ++i) {
      const size_t at = (size_t(box.y + y + i) * size_t(size.width) + size_t(box.x)) * kPixelBytes;
      std::memcpy(rows.row(i), &image[at], size_t(box.width) * kPixelBytes);
    }
    sink.push(rows.row(0), rows.stride(), n);
    std::memset(rows.row(0), 0xEE, rows.stride() * size_t(step));
  }
}

std::vector<uint8_t> identity() {
  std::vector<uint8_t> entries(3 * 256);
  for (size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<uint8_t>(i);
  return entries;
}

/// The R plane of a plan run on a one-channel picture.
std::vector<int> run(const Plan& plan, const std::vector<int>& reds, Size size) {
  std::vector<uint8_t> image;
  for (const int red : reds) image.insert(image.end(), {static_cast<uint8_t>(red), 0, 0, 0});
  const std::vector<uint8_t> entries = identity();
  Sample sample(plan.last.box.size(), 1, 1, true, entries.data());
  Fuser(kernels()).run(plan, image.data(), size_t(size.width) * kPixelBytes, size, sample.output);
  return {sample.bytes.begin(), sample.bytes.end()};
}

}  // namespace

TEST_CASE("only what is needed is decoded") {
  const auto box = [](Take take, Size image) {
    Plan plan;
    plan.last = take;
    return decode_box(plan, image);
  };
  CHECK(box({.box = {2, 3, 4, 5}}, {10, 10}) == Box{2, 3, 4, 5});
  CHECK(box({.box = {-2, 3, 4, 50}}, {10, 10}) == Box{0, 3, 2, 7});
  CHECK(box({.box = {-9, -9, 3, 3}}, {10, 10}) == Box{0, 0, 1, 1});  // only padding: a decoder still needs a box
  CHECK(box({.box = {50, 60, 3, 3}}, {10, 10}) == Box{0, 0, 1, 1});
  CHECK(box({.box = {-2, 3, 4, 5}, .pad_mode = PadMode::kReflect}, {10, 10}) == Box{0, 3, 3, 5});

  // Resize and centre crop: the windows of the outputs that stay, wherever the flip puts them.
  Plan plan;
  plan.stages.push_back({{.box = {10, 20, 400, 300}}, {40, 30}, Filter::kBilinear, false});
  plan.last = {.box = {10, 5, 20, 20}, .flip_horizontal = true};
  CHECK(decode_box(plan, {500, 400}) == Box{105, 65, 210, 210});
  plan.stages[0].filter = Filter::kNearest;
  CHECK(decode_box(plan, {500, 400}) == Box{115, 75, 191, 191});
  plan.stages[0].resize = {40, 300};  // one axis only
  CHECK(decode_box(plan, {500, 400}) == Box{115, 25, 191, 20});
  plan.stages[0].take.flip_vertical = true;  // collected whole before it is mirrored
  CHECK(decode_box(plan, {500, 400}) == Box{10, 20, 400, 300});
}

TEST_CASE("of a single warp, only what the next take needs is decoded") {
  Plan plan;
  plan.stages.push_back({{.box = {50, 40, 200, 100}}, {200, 100}, Filter::kNearest, false, {{Effect::Kind::kWarp}}});
  plan.warps.push_back({.filter = Filter::kBilinear, .a = {0.5, 0, 20, 0, 0.5, 10}, .out = {200, 100}});
  plan.last.box = {0, 0, 200, 100};
  CHECK(decode_box(plan, {500, 400}) == Box{69, 49, 102, 52});
  plan.last.box = {20, 30, 10, 10};
  CHECK(decode_box(plan, {500, 400}) == Box{79, 64, 7, 7});
  plan.stages[0].take.box = {50, 40, 400, 200};  // and of a resize before it
  CHECK(decode_box(plan, {500, 400}).width == 13);
  CHECK(kernel_box(plan, {500, 400}) == Box{51, 41, 399, 199});
  plan.stages[0].effects.push_back({Effect::Kind::kContrast, 0.5f});  // needs the mean of all
  CHECK(decode_box(plan, {500, 400}) == Box{51, 41, 399, 199});
}

TEST_CASE(
    "windows of single warps: the same bytes as of whole ones, from nothing but the box, in every order of arrival") {
  std::vector<uint8_t> entries = identity();
  std::vector<std::unique_ptr<Fuser>> fusers;
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    if (const Kernels* set = kernels_named(name)) fusers.push_back(std::make_unique<Fuser>(*set));
  }
  int smaller = 0;
  for (int i = 0; i < 2000; ++i) {
    CAPTURE(i);
    const Size size{maker.between(1, 90), maker.between(1, 90)};
    std::vector<uint8_t> image = maker.image(size);
    Plan plan;
    PlanStage stage;
    stage.take = maker.take(size, maker.between(0, 3) == 0);
    if (maker.coin()) stage.take.flip_horizontal = stage.take.flip_vertical = false;
    const Size taken = stage.take.box.size();
    stage.resize = maker.coin() ? taken : Size{maker.between(1, 60), maker.between(1, 60)};
    stage.filter = Filter::kBilinear;
    stage.effects.push_back({Effect::Kind::kWarp});
    const Size out = maker.coin() ? stage.resize : Size{maker.between(1, 90), maker.between(1, 90)};
    if (out != stage.resize) stage.made = out;
    plan.warps.push_back(maker.warp(out));
    plan.stages.push_back(stage);
    if (maker.coin()) {
      plan.stages.push_back({maker.take(out, maker.coin()), {maker.between(1, 60), maker.between(1, 60)}});
      plan.last = maker.take(plan.stages[1].resize, maker.coin());
    } else {
      plan.last = maker.take(out, maker.coin());
    }
    Plan whole = plan;  // another effect, which changes nothing, keeps the fuser from making a window
    whole.stages[0].effects.push_back({Effect::Kind::kBrightness, 1.0f});
    const bool planar = maker.coin();
    Sample want(plan.last.box.size(), 1, 3, planar, entries.data());
    fusers[0]->run(whole, image.data(), size_t(size.width) * kPixelBytes, size, want.output);
    const Box box = decode_box(plan, size), all = decode_box(whole, size);
    smaller += box.width * box.height < all.width * all.height;
    for (const auto& fuser : fusers) {
      Sample got(plan.last.box.size(), 1, 3, planar, entries.data());
      push_in_steps(*fuser, plan, image, size, got.output, maker.between(1, 40));
      REQUIRE(got.bytes == want.bytes);
    }
  }
  CHECK(smaller > 500);
}

TEST_CASE("plans give the same bytes on every set, in every order of arrival, with a Fuser used before") {
  std::vector<uint8_t> entries(kMaxLutBytes);
  std::vector<std::unique_ptr<Fuser>> fusers;
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    if (const Kernels* set = kernels_named(name)) fusers.push_back(std::make_unique<Fuser>(*set));
  }
  for (int i = 0; i < 3000; ++i) {
    CAPTURE(i);
    const Size size{maker.between(1, 120), maker.between(1, 120)};
    const std::vector<uint8_t> image = maker.image(size);
    const Plan plan = maker.plan(size, 2, Filter::kFusedBicubic);
    if (maker.between(0, 3) == 0) {
      for (uint8_t& b : entries) b = static_cast<uint8_t>(maker.between(0, 255));
    }
    const int element = 1 << maker.between(0, 2), channels = maker.coin() ? 3 : 1;
    const bool planar = maker.coin();
    Sample want(plan.last.box.size(), element, channels, planar, entries.data());
    fusers[0]->run(plan, image.data(), size_t(size.width) * kPixelBytes, size, want.output);
    for (const auto& fuser : fusers) {
      Sample got(plan.last.box.size(), element, channels, planar, entries.data());
      push_in_steps(*fuser, plan, image, size, got.output, maker.between(1, 40));
      REQUIRE(got.bytes == want.bytes);
    }
  }
}

TEST_CASE("the frames of a clip are written beside one another, channel by channel") {
  const Size size{5, 3};
  const int frames = 4, clips = 2;
  for (const int element : {1, 4}) {
    const OutputStrides one = strides_of(Layout::kPlanar, 3, size, element);
    const OutputStrides clip = clip_strides(one, frames);
    const auto plane = static_cast<size_t>(size.width * size.height * element);
    std::vector<int> written(one.sample_bytes * frames * clips);
    for (size_t place = 0; place < size_t(frames) * clips; ++place) {
      CHECK(one.offset_of(place) == place * one.sample_bytes);
      for (size_t channel = 0; channel < 3; ++channel) {
        const size_t begin = clip.offset_of(place) + channel * static_cast<size_t>(clip.channel_stride);
        const size_t expected = ((place / frames * 3 + channel) * frames + place % frames) * plane;
        CHECK(begin == expected);
        for (size_t at = begin; at < begin + plane; ++at) ++written.at(at);
      }
    }
    CHECK(std::count(written.begin(), written.end(), 1) == static_cast<std::ptrdiff_t>(written.size()));
  }
}

TEST_CASE("a take cuts, pads and mirrors") {
  const std::vector<int> image = {1, 2, 3,  //
                                  4, 5, 6};
  Plan plan;
  plan.last.box = {1, 0, 2, 2};
  CHECK(run(plan, image, {3, 2}) == std::vector<int>{2, 3, 5, 6});
  plan.last.flip_horizontal = true;
  CHECK(run(plan, image, {3, 2}) == std::vector<int>{3, 2, 6, 5});
  plan.last.flip_vertical = true;
  CHECK(run(plan, image, {3, 2}) == std::vector<int>{6, 5, 3, 2});

  plan.last = {};
  plan.last.box = {-2, 1, 6, 2};
  plan.last.fill = {9, 0, 0};
  CHECK(run(plan, image, {3, 2}) == std::vector<int>{9, 9, 4, 5, 6, 9, 9, 9, 9, 9, 9, 9});
  plan.last.pad_mode = PadMode::kEdge;
  CHECK(run(plan, image, {3, 2}) == std::vector<int>{4, 4, 4, 5, 6, 6, 4, 4, 4, 5, 6, 6});
  plan.last.pad_mode = PadMode::kReflect;
  CHECK(run(plan, image, {3, 2}) == std::vector<int>{6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2});
  plan.last.pad_mode = PadMode::kSymmetric;
  CHECK(run(plan, image, {3, 2}) == std::vector<int>{5, 4, 4, 5, 6, 6, 5, 4, 4, 5, 6, 6});
}

TEST_CASE("halving with the box filter averages, first along one axis, then along the other") {
  const std::vector<int> image = {0, 1, 4, 4,  //
                                  0, 0, 8, 8};
  Plan plan;
  plan.stages.push_back({{{0, 0, 4, 2}}, {2, 1}, Filter::kBox, false});
  plan.last.box = {0, 0, 2, 1};
  CHECK(run(plan, image, {4, 2}) == std::vector<int>{1, 6});  // 0.5 rounds up to 1, then (1 + 0) / 2 does again
  plan.stages[0].vertical_first = true;
  CHECK(run(plan, image, {4, 2}) == std::vector<int>{1, 6});
  plan.stages[0].resize = {4, 1};
  plan.last.box = {0, 0, 4, 1};
  CHECK(run(plan, image, {4, 2}) == std::vector<int>{0, 1, 6, 6});
}
