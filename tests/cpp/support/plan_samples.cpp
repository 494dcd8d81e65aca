// Random images, takes and plans of every kind, and samples to write them into.
#include "support/plan_samples.h"

#include <algorithm>
#include <utility>

#include "core/base/geometry.h"

namespace headrace::test {

std::vector<uint8_t> PlanMaker::image(Size size) {
  std::vector<uint8_t> pixels(size_t(size.width) * size_t(size.height) * kPixelBytes);
  for (uint8_t& b : pixels) b = static_cast<uint8_t>(between(0, 255));
  return pixels;
}

Take PlanMaker::take(Size image, bool padded) {
  Take take;
  const auto cut = [&](int size, int& from, int& length) {
    const int reach = padded ? 9 : 0;
    from = between(-reach, size - 1);
    length = between(1, size + reach - from);
    if (from + length <= 0) length = 1 - from;
  };
  cut(image.width, take.box.x, take.box.width);
  cut(image.height, take.box.y, take.box.height);
  take.flip_horizontal = coin();
  take.flip_vertical = coin();
  take.gray = between(0, 3) == 0;
  take.pad_mode = static_cast<PadMode>(between(0, 3));
  for (uint8_t& f : take.fill) f = static_cast<uint8_t>(between(0, 255));
  return take;
}

Plan PlanMaker::plan(Size image, int most_stages, Filter last) {
  Plan plan;
  for (int stages = between(0, most_stages); stages > 0; --stages) {
    PlanStage stage;
    stage.take = take(image, between(0, 2) == 0);
    stage.resize = {between(1, 90), between(1, 90)};
    if (between(0, 4) == 0) stage.resize.width = stage.take.box.width;
    if (between(0, 4) == 0) stage.resize.height = stage.take.box.height;
    stage.filter = static_cast<Filter>(between(0, static_cast<int>(last)));
    stage.vertical_first = coin();
    plan.stages.push_back(stage);
    image = stage.resize;
  }
  plan.last = take(image, between(0, 2) == 0);
  return plan;
}

Warp PlanMaker::warp(Size out) {
  constexpr Filter kFilters[] = {Filter::kNearest, Filter::kBilinear, Filter::kBicubic};
  Warp warp;
  warp.filter = kFilters[between(0, 2)];
  warp.perspective = coin();
  warp.out = out;
  warp.fill = static_cast<uint32_t>(between(0, 0xFFFFFF));
  for (const int i : {0, 4}) warp.a[i] = between(500, 1500) / 1000.0;
  if (between(0, 3) > 0) {
    for (const int i : {1, 3}) warp.a[i] = between(-500, 500) / 1000.0;
  }
  for (const int i : {2, 5}) warp.a[i] = between(-20000, 20000) / (coin() ? 1000.0 : 10000.0);
  for (const int i : {6, 7}) warp.a[i] = between(-500, 500) / 100000.0;
  return warp;
}

TensorWarp PlanMaker::tensor_warp(Size size) {
  TensorWarp made;
  for (const size_t i : {0, 4}) made.matrix[i] = float(between(800, 1200)) / 1000;
  for (const size_t i : {1, 3}) made.matrix[i] = coin() ? 0 : float(between(-400, 400)) / 1000;
  for (const size_t i : {2, 5}) made.matrix[i] = float(between(-2, 2)) * float(coin() ? size.width : 1) / 4;
  for (float& value : made.fill) value = float(between(0, 510)) / 2;
  for (bool* one : {&made.bilinear, &made.filled, &made.first_version, &made.fused, &made.fused_positions})
    *one = coin();
  return made;
}

void PlanMaker::add_effects(Plan& plan, PlanStage& stage, int most) {
  stage.effects = effects(plan, stage.resize, most, Effect::Kind::kMixChains);
}

ChainMix PlanMaker::mix(Plan& plan, Size size) {
  const bool summed = coin();
  ChainMix made{!summed && coin(), {}, float(between(0, 1000)) / 1000, summed};
  for (int chains = between(1, 4); chains > 0; --chains) {
    // Other sums than 1 exceed a byte.
    made.chains.push_back({float(between(0, 500)) / 1000, effects(plan, size, 3, Effect::Kind::kTensorWarp)});
  }
  return made;
}

std::vector<Effect> PlanMaker::effects(Plan& plan, Size size, int most, Effect::Kind last) {
  std::vector<Effect> made(size_t(between(0, most)));
  for (Effect& effect : made) {
    effect.kind = static_cast<Effect::Kind>(between(0, static_cast<int>(last)));
    if (last > Effect::Kind::kMixChains && effect.kind == Effect::Kind::kMixChains) effect.kind = last;  // no nesting
    if (effect.kind == Effect::Kind::kMixChains) {
      ChainMix mixed = mix(plan, size);
      effect.amount = static_cast<int>(plan.chain_mixes.size());
      plan.chain_mixes.push_back(std::move(mixed));
      continue;
    }
    if (effect.kind == Effect::Kind::kTensorWarp) {
      effect.amount = static_cast<int>(plan.tensor_warps.size());
      plan.tensor_warps.push_back(tensor_warp(size));
      continue;
    }
    if (effect.kind > Effect::Kind::kMixChains) {
      effect.factor = float(between(0, 2000)) / 1000;
      effect.rest = 1.0f - effect.factor;
      effect.amount = between(0, 7);  // of TensorFlag; version 1 never rounds once
      if (effect.amount & kFirstVersion) effect.amount &= ~kFused;
      continue;
    }
    if (effect.kind == Effect::Kind::kBlur) {
      effect.width = 2 * between(0, std::min(3, size.width - 1)) + 1;
      effect.height = 2 * between(0, std::min(3, size.height - 1)) + 1;
      effect.weights = static_cast<int>(plan.weights.size());
      for (int i = 0; i < effect.width + effect.height; ++i) plan.weights.push_back(float(between(0, 999)) / 3000);
    }
    if (effect.kind == Effect::Kind::kWarp) {
      effect.amount = static_cast<int>(plan.warps.size());
      plan.warps.push_back(warp(size));
      continue;
    }
    if (effect.kind == Effect::Kind::kBoxBlur) {
      effect.amount = between(0, 6);
      effect.width = (1 << 24) / (2 * effect.amount + 1 + between(0, 1));
      effect.height = ((1 << 24) - (2 * effect.amount + 1) * effect.width) / 2;
      continue;
    }
    if (effect.kind == Effect::Kind::kPermute) {
      const auto channel = [&] { return static_cast<uint8_t>(between(0, 2)); };
      effect.amount = channel_order({channel(), channel(), channel()});
      continue;
    }
    effect.factor = float(between(0, 1000)) / float(between(0, 2) == 0 ? 300 : 1000);
    if (effect.kind == Effect::Kind::kScaleShift) effect.rest = float(between(-2000, 2000)) / 8;
    effect.amount = effect.kind == Effect::Kind::kPosterize ? 256 - (256 >> between(0, 8)) : between(0, 255);
  }
  return made;
}

std::vector<Erased> PlanMaker::erased(Size output, int values) {
  std::vector<Erased> boxes(size_t(between(0, 2)));
  for (Erased& one : boxes) {
    one.box = {between(0, output.width - 1), between(0, output.height - 1), 0, 0};
    one.box.width = between(1, output.width - one.box.x);
    one.box.height = between(1, output.height - one.box.y);
    one.value = between(0, values - 1);
    one.noise = static_cast<Noise>(between(0, 2));
    one.flip_horizontal = coin();
    one.flip_vertical = coin();
    for (uint16_t& level : one.levels) level = static_cast<uint16_t>(between(0, kNoiseLevels - 1));
    one.state = static_cast<uint64_t>(between(0, 1 << 30)) << 33;
  }
  return boxes;
}

Sample::Sample(Size size, int element, int channels, bool planar, const uint8_t* entries) {
  const ptrdiff_t e = element, w = size.width, h = size.height, c = channels;
  bytes.resize(size_t(w * h * c * e));
  output.base = bytes.data();
  output.channel_stride = planar ? w * h * e : e;
  output.row_stride = planar ? w * e : w * c * e;
  output.pixel_stride = planar ? e : c * e;
  output.lut = {element, channels, entries, nullptr};
}

}  // namespace headrace::test
