// Random images, takes and plans of every kind, and samples to write them into.
#pragma once

#include <random>
#include <vector>

#include "core/fuse/sinks/output.h"
#include "core/plan/plan.h"

namespace headrace::test {

class PlanMaker {
 public:
  explicit PlanMaker(unsigned seed) : random_(seed) {}

  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool coin() { return between(0, 1) != 0; }

  std::vector<uint8_t> image(Size size);
  /// A part of the image, or, with padding, a window that may reach outside.
  Take take(Size image, bool padded);
  /// Resizes by Pillow's filters, or by any up to `last`.
  Plan plan(Size image, int most_stages = 2, Filter last = Filter::kHamming);
  /// A warp that keeps most of an image of size `out`, and that size.
  Warp warp(Size out);
  /// Gives a stage of the plan a few effects of all kinds, with factors inside and outside [0, 1].
  void add_effects(Plan& plan, PlanStage& stage, int most);
  /// A few boxes of an output of this size.
  std::vector<Erased> erased(Size output, int values);

 private:
  ChainMix mix(Plan& plan, Size size);
  TensorWarp tensor_warp(Size size);
  std::vector<Effect> effects(Plan& plan, Size size, int most, Effect::Kind last);
  std::mt19937 random_;
};

/// Memory for one output of a plan.
struct Sample {
  Output output;
  std::vector<uint8_t> bytes;

  Sample(Size size, int element, int channels, bool planar, const uint8_t* entries);
};

}  // namespace headrace::test
