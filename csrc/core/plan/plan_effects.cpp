// The effects of steps that only change values: their parameters as the integers and floats of Pillow.
#include "core/plan/plan_effects.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace headrace {

namespace {

// Factors and their complements are doubles that torch rounds to floats.
Effect tensor_effect(Effect::Kind kind, const Step& step, double factor) {
  const int flags =
      (step.first_version ? kFirstVersion : 0) | (step.fused ? kFused : 0) | (step.one_channel ? kOneChannel : 0);
  return {kind, static_cast<float>(factor), flags, 0, 0, 0, static_cast<float>(1.0 - factor)};
}

}  // namespace

Effect value_effect(const Step& step, double draw) {
  const auto factor = static_cast<float>(std::clamp<double>(draw, -kMostFactor, kMostFactor));
  switch (step.kind) {
    case Step::Kind::kBrightness:
      return {Effect::Kind::kBrightness, factor};
    case Step::Kind::kContrast:
      return {Effect::Kind::kContrast, factor};
    case Step::Kind::kSaturation:
      return {Effect::Kind::kSaturation, factor};
    case Step::Kind::kSharpness:
      return {Effect::Kind::kSharpness, factor};
    case Step::Kind::kSolarizeAdd:
      return {Effect::Kind::kSolarizeAdd, 0, step.drawn ? std::clamp(static_cast<int>(draw), 0, 255) : step.value};
    case Step::Kind::kPermute:
      return {Effect::Kind::kPermute, 0, channel_order(step.order)};
    case Step::Kind::kHue:  // Python's int(), then numpy's uint8
      return {Effect::Kind::kHue, 0, static_cast<int>(draw * 255) & 255};
    case Step::Kind::kInvert:
      return {Effect::Kind::kInvert};
    case Step::Kind::kPosterize: {
      const int bits = step.drawn ? static_cast<int>(draw) : step.bits;
      if (bits < 0) throw Error(Stage::kPlan, "bits must be between or equal to 1 and 8");  // Pillow's message
      return {Effect::Kind::kPosterize, 0, 256 - (256 >> std::min(bits, 8))};
    }
    case Step::Kind::kSolarize: {
      const double threshold = std::clamp(step.drawn ? draw : step.threshold, 0.0, 256.0);
      return {Effect::Kind::kSolarize, 0, static_cast<int>(std::ceil(threshold))};
    }
    case Step::Kind::kAutocontrast:
      return {Effect::Kind::kAutocontrast};
    case Step::Kind::kEqualize:
      return {Effect::Kind::kEqualize};
    case Step::Kind::kTensorSaturation:
      return tensor_effect(Effect::Kind::kTensorSaturation, step, draw);
    case Step::Kind::kTensorContrast:
      return tensor_effect(Effect::Kind::kTensorContrast, step, draw);
    case Step::Kind::kTensorSharpness:
      return tensor_effect(Effect::Kind::kTensorSharpness, step, draw);
    case Step::Kind::kTensorAutocontrast:
      return tensor_effect(Effect::Kind::kTensorAutocontrast, step, draw);
    case Step::Kind::kTensorHue:
      return tensor_effect(Effect::Kind::kTensorHue, step, draw);
    default:
      throw Error(Stage::kPlan, "the step changes more than values");
  }
}

}  // namespace headrace
