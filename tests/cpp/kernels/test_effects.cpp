// Plans with effects and erased boxes: every instruction set against a slow reference.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "core/fuse/fuse.h"
#include "slow/slow_effects.h"
#include "support/plan_samples.h"
#include "support/sanitizers.h"

using namespace headrace;
using namespace headrace::test;

namespace {

constexpr int kValues = 3;

std::vector<const Kernels*> sets() {
  std::vector<const Kernels*> all;
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    if (const Kernels* set = kernels_named(name)) all.push_back(set);
  }
  return all;
}

std::vector<uint8_t> noise(PlanMaker& maker, size_t bytes) {
  std::vector<uint8_t> made(bytes);
  for (uint8_t& b : made) b = static_cast<uint8_t>(maker.between(0, 255));
  return made;
}

/// The result of a plan without effects, as RGBX pixels.
std::vector<uint8_t> pixels_of(const Plan& plan, const std::vector<uint8_t>& image, Size size) {
  std::vector<uint8_t> identity(3 * 256);
  for (size_t i = 0; i < identity.size(); ++i) identity[i] = static_cast<uint8_t>(i);
  const Size out = plan.last.box.size();
  std::vector<uint8_t> made(size_t(out.width) * size_t(out.height) * kPixelBytes);
  const Output output{made.data(), 1, ptrdiff_t{out.width} * kPixelBytes, kPixelBytes, {1, 3, identity.data()}};
  Fuser(*kernels_named("scalar")).run(plan, image.data(), size_t(size.width) * kPixelBytes, size, output);
  return made;
}

/// The row of an element: SplitMix64 from its first number on, so far as the element's place.
int slow_row(const Erased& erased, int c, int x, int y) {
  if (erased.noise == Noise::kNone) return erased.value;
  if (erased.noise == Noise::kChannel) return erased.value + erased.levels[size_t(c)];
  const Box& box = erased.box;
  const int column = erased.flip_horizontal ? box.width - 1 - (x - box.x) : x - box.x;
  const int row = erased.flip_vertical ? box.height - 1 - (y - box.y) : y - box.y;
  const int place = (c * box.height + row) * box.width + column;
  uint64_t state = erased.state, z = 0;
  for (int i = 0; i <= place / 4; ++i) z = state += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return erased.value + int((z ^ (z >> 31)) / (uint64_t{1} << 16 * (place % 4)) % 65536);
}

/// The slow reference: one stage after the other on whole images, then the erased boxes.
void run_slowly(const Plan& plan, std::vector<uint8_t> image, Size size, const Output& output) {
  for (const PlanStage& stage : plan.stages) {
    Plan one;
    one.stages.push_back(stage);
    one.stages[0].effects.clear();
    one.last.box = whole_image(stage.resize);
    image = pixels_of(one, image, size);
    size = stage.resize;
    Picture picture;
    for (size_t i = 0; i < image.size(); i += kPixelBytes) picture.push_back({image[i], image[i + 1], image[i + 2]});
    for (const Effect& effect : stage.effects) apply(effect, plan, size, picture);
    for (size_t i = 0; i < image.size(); ++i) {
      if (i % kPixelBytes < 3) image[i] = static_cast<uint8_t>(picture[i / kPixelBytes][i % kPixelBytes]);
    }
  }
  Plan rest;
  rest.last = plan.last;
  Fuser(*kernels_named("scalar")).run(rest, image.data(), size_t(size.width) * kPixelBytes, size, output);
  for (const Erased& one : plan.erased) {
    const Box& box = one.box;
    for (int y = box.y; y < box.y + box.height; ++y) {
      for (int x = box.x; x < box.x + box.width; ++x) {
        for (int c = 0; c < output.lut.channels; ++c) {
          const auto bytes = size_t(output.lut.element_bytes);
          uint8_t* to = output.base + c * output.channel_stride + y * output.row_stride + x * output.pixel_stride;
          std::memcpy(to, output.erased + size_t(slow_row(one, c, x, y) * output.lut.channels + c) * bytes, bytes);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("plans with effects and erased boxes give the slow way's bytes on every set") {
  PlanMaker maker(31);
  const std::vector<uint8_t> entries = noise(maker, kMaxLutBytes),
                             values = noise(maker, (kValues + kNoiseLevels) * 3 * 4);
  std::vector<std::unique_ptr<Fuser>> fusers;
  for (const Kernels* set : sets()) fusers.push_back(std::make_unique<Fuser>(*set));
  for (int i = 0; i < 1500; ++i) {
    CAPTURE(i);
    const Size size{maker.between(1, 90), maker.between(1, 90)};
    const std::vector<uint8_t> image = maker.image(size);
    Plan plan = maker.plan(size);
    for (PlanStage& stage : plan.stages) maker.add_effects(plan, stage, 4);
    const Size out = plan.last.box.size();
    plan.erased = maker.erased(out, kValues);
    const int element = 1 << maker.between(0, 2), channels = maker.coin() ? 3 : 1;
    const bool planar = maker.coin();
    Sample want(out, element, channels, planar, entries.data());
    want.output.erased = values.data();
    run_slowly(plan, image, size, want.output);
    for (const auto& fuser : fusers) {
      Sample got(out, element, channels, planar, entries.data());
      got.output.erased = values.data();
      fuser->run(plan, image.data(), size_t(size.width) * kPixelBytes, size, got.output);
      REQUIRE(got.bytes == want.bytes);
    }
  }
}

TEST_CASE("the sets agree on every colour, and leave what lies beside the pixels alone") {
  constexpr size_t kPixels = 65536 + 17;
  PlanMaker maker(32);
  const std::vector<uint8_t> tables = noise(maker, 3 * 256);
  const EffectLoops& plain = *kernels_named("scalar")->effects;
  for (const Kernels* set : sets()) {
    CAPTURE(set->name);
    const EffectLoops& loops = *set->effects;
    for (int red = 0; red < 256; red += kCaseStep) {
      std::vector<uint8_t> colours(kPixels * kPixelBytes, static_cast<uint8_t>(red));
      for (size_t i = 0; i < kPixels; ++i) {
        colours[i * kPixelBytes + 1] = static_cast<uint8_t>(i);
        colours[i * kPixelBytes + 2] = static_cast<uint8_t>(i >> 8);
      }
      const size_t count = kPixels - static_cast<size_t>(maker.between(1, 16));
      const float factor = float(maker.between(0, 3000)) / 1000;
      const int turn = maker.between(0, 255);
      const auto same = [&](auto change) {
        std::vector<uint8_t> want = colours, got = colours;
        change(plain, want.data());
        change(loops, got.data());
        for (size_t i = 3; i < count * kPixelBytes; i += kPixelBytes) want[i] = got[i] = 0;
        return want == got;
      };
      REQUIRE(same([&](const EffectLoops& l, uint8_t* p) { l.gray(p, count); }));
      REQUIRE(same([&](const EffectLoops& l, uint8_t* p) { l.change_saturation(p, count, factor); }));
      REQUIRE(same([&](const EffectLoops& l, uint8_t* p) { l.turn_hue(p, count, turn); }));
      REQUIRE(same([&](const EffectLoops& l, uint8_t* p) { l.permute(p, count, turn % 3 | 1 << 2 | 2 << 4); }));
      REQUIRE(same([&](const EffectLoops& l, uint8_t* p) { l.look_up(p, count, tables.data()); }));
      REQUIRE(loops.sum_of_luma(colours.data(), count) == plain.sum_of_luma(colours.data(), count));
      std::vector<int32_t> want(3 * 256, 1), got = want;
      plain.add_to_histograms(colours.data(), count, want.data());
      loops.add_to_histograms(colours.data(), count, got.data());
      REQUIRE(want == got);
    }
  }
}

TEST_CASE("the sets agree on torchvision's effects of every colour, and on rows of every length to their last pixel") {
  PlanMaker maker(33);
  const EffectLoops& plain = *kernels_named("scalar")->effects;
  std::vector<uint8_t> colours(size_t{65536} * kPixelBytes);
  for (int red = 0; red < 256; red += kCaseStep) {
    for (size_t i = 0; i < 65536; ++i) {
      const uint8_t pixel[] = {static_cast<uint8_t>(red), static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8), 0};
      std::memcpy(&colours[i * kPixelBytes], pixel, kPixelBytes);
    }
    for (const Kernels* set : sets()) {
      for (const bool once : {false, true}) {
        const size_t count = 65536 - static_cast<size_t>(maker.between(0, 16));
        REQUIRE(set->effects->tensor_gray_sum(colours.data(), count, once) ==
                plain.tensor_gray_sum(colours.data(), count, once));
        const float turn = float(maker.between(-500, 500)) / 1000;
        std::vector<uint8_t> want = colours, got = colours;
        plain.tensor_turn_hue(want.data(), count, turn, once);
        set->effects->tensor_turn_hue(got.data(), count, turn, once);
        REQUIRE(want == got);
      }
    }
  }
  for (size_t count = 2; count <= 130; ++count) {
    const std::vector<uint8_t> a = noise(maker, count * kPixelBytes), b = noise(maker, count * kPixelBytes),
                               c = noise(maker, count * kPixelBytes);
    const uint8_t* rows[] = {a.data(), b.data(), c.data()};
    for (const Kernels* set : sets()) {
      for (const int flags : {0, int{kFirstVersion}, int{kFused}}) {
        std::vector<uint8_t> want(count * kPixelBytes, 0xA5), got = want;
        plain.tensor_sharpen(rows, count, 1.7F, -0.7F, flags, want.data());
        set->effects->tensor_sharpen(rows, count, 1.7F, -0.7F, flags, got.data());
        for (size_t i = 3; i < want.size(); i += kPixelBytes) want[i] = got[i] = 0;
        REQUIRE(want == got);
      }
    }
  }
}
