// The effects: their kinds, the names of their steps, their parameters, and the maps of those that map bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/pixel_math.h"

namespace headrace {

/// Larger factors give the same result: each byte that differs from the byte it is blended with becomes 0 or 255.
inline constexpr float kMostFactor = 1e6f;

/// A change of pixel values. Some effects need the whole image: its mean L (Contrast), its histograms (Autocontrast,
/// Equalize), pixels other than the one it changes (Blur, Sharpness, Warp), or several changed copies (MixChains).
struct Effect {
  enum class Kind : uint8_t {
    kGray,  // R = G = B = L
    kBrightness,
    kContrast,
    kSaturation,
    kHue,
    kInvert,
    kPosterize,
    kSolarize,
    kAutocontrast,
    kEqualize,
    kBlur,
    kSharpness,
    kPermute,
    kSolarizeAdd,
    kWarp,
    kBoxBlur,  // this and the following: on the CPU alone
    kScaleShift,
    kMixChains,
    kTensorSaturation,  // this and the following: as torchvision changes a byte tensor
    kTensorContrast,
    kTensorSharpness,
    kTensorAutocontrast,
    kTensorHue,
    kTensorWarp
  };
  Kind kind{};
  // Brightness, Contrast, Saturation, Sharpness, those of tensors too: within kMostFactor; TensorHue: share of a turn;
  // ScaleShift: what bytes are multiplied by
  float factor = 0;
  // Hue: added to H; Posterize: mask of the bits to keep; Solarize: first value inverted; Permute: channel_order();
  // SolarizeAdd: added to values below 128; Warp: index in Plan::warps; BoxBlur: pixels on each side in the box;
  // MixChains: index in Plan::chain_mixes; TensorWarp: in Plan::tensor_warps; other effects on tensors: TensorFlag
  int amount = 0;
  // Blur: size of the kernel, and index in Plan::weights of its first weight: those of a row, then those of a column.
  // BoxBlur: `width` is the weight of a pixel in the box, `height` of the next pixel on each side, in units of 2^-24.
  // TensorContrast: `width` is the number of lanes by which torch sums up more pixels than kMostExact, at most
  // kMostLanes; 0: there are no more.
  int width = 0, height = 0, weights = 0;
  float rest = 0;  // effects on tensors: 1 - factor; ScaleShift: what is added
  bool operator==(const Effect&) const = default;
};

/// Effects that have one parameter at most, by the names of their steps; Gray, which follows from other steps, too.
inline constexpr std::pair<std::string_view, Effect::Kind> kEffectNames[] = {
    {"Gray", Effect::Kind::kGray},
    {"Brightness", Effect::Kind::kBrightness},
    {"Contrast", Effect::Kind::kContrast},
    {"Saturation", Effect::Kind::kSaturation},
    {"Hue", Effect::Kind::kHue},
    {"Invert", Effect::Kind::kInvert},
    {"Posterize", Effect::Kind::kPosterize},
    {"Solarize", Effect::Kind::kSolarize},
    {"Autocontrast", Effect::Kind::kAutocontrast},
    {"Equalize", Effect::Kind::kEqualize},
    {"Sharpness", Effect::Kind::kSharpness},
    {"PermuteChannels", Effect::Kind::kPermute},
    {"SolarizeAdd", Effect::Kind::kSolarizeAdd},
    {"TensorSaturation", Effect::Kind::kTensorSaturation},
    {"TensorContrast", Effect::Kind::kTensorContrast},
    {"TensorSharpness", Effect::Kind::kTensorSharpness},
    {"TensorAutocontrast", Effect::Kind::kTensorAutocontrast},
    {"TensorHue", Effect::Kind::kTensorHue}};

/// The effect of this name; nullptr if there is none.
static inline const Effect::Kind* effect_named(std::string_view name) {
  for (const auto& [known, kind] : kEffectNames) {
    if (known == name) return &kind;
  }
  return nullptr;
}

/// Whether the step of this effect has a parameter.
static inline bool has_parameter(Effect::Kind kind) {
  return kind != Effect::Kind::kGray && kind != Effect::Kind::kInvert && kind != Effect::Kind::kAutocontrast &&
         kind != Effect::Kind::kEqualize;
}

/// Lanes of a vector of torch's.
inline constexpr int kMostLanes = 16;
/// Pixels whose bytes torch's float32 holds the sum of exactly: 2^24 / 255.
inline constexpr size_t kMostExact = 65793;

/// Effect::amount of effects on tensors: a sum of these.
enum TensorFlag : int { kFirstVersion = 1, kFused = 2, kOneChannel = 4 };

static inline bool is_of_tensors(Effect::Kind kind) { return kind > Effect::Kind::kMixChains; }

/// Effect::amount of Permute: two bits for each channel's number in the image before.
constexpr int channel_order(std::array<uint8_t, 3> order) { return order[0] | order[1] << 2 | order[2] << 4; }

/// An effect on images with its step's parameter as Pillow reads it, 0 if it has none. Throws Error(kPlan) for negative
/// bits of Posterize.
static inline Effect pillow_effect(Effect::Kind kind, double parameter) {
  switch (kind) {
    case Effect::Kind::kBrightness:
    case Effect::Kind::kContrast:
    case Effect::Kind::kSaturation:
    case Effect::Kind::kSharpness:
      return {kind, static_cast<float>(std::clamp<double>(parameter, -kMostFactor, kMostFactor))};
    case Effect::Kind::kHue:  // Python's int(), then numpy's uint8
      return {kind, 0, static_cast<int>(parameter * 255) & 255};
    case Effect::Kind::kPosterize:
      if (parameter <= -1) throw Error(Stage::kPlan, "bits must be between or equal to 1 and 8");  // Pillow's message
      return {kind, 0, 256 - (256 >> static_cast<int>(std::min(parameter, 8.0)))};
    case Effect::Kind::kSolarize:
      return {kind, 0, static_cast<int>(std::ceil(std::clamp(parameter, 0.0, 256.0)))};
    default:  // a byte, or none
      return {kind, 0, static_cast<int>(std::clamp(parameter, 0.0, 255.0))};
  }
}

/// An effect on byte tensors. The factor and its complement are doubles that torch rounds to floats. `flags`: a sum of
/// TensorFlag.
static inline Effect tensor_effect(Effect::Kind kind, double factor, int flags) {
  return {kind, static_cast<float>(factor), flags, 0, 0, 0, static_cast<float>(1.0 - factor)};
}

/// albumentations' brightness and contrast: bytes times `factor`, plus `shift`, in float32, cut to bytes.
static inline Effect scale_shift(double factor, double shift) {
  return {Effect::Kind::kScaleShift, static_cast<float>(factor), 0, 0, 0, 0, static_cast<float>(shift)};
}

/// Whether an effect maps each byte by itself, given the mean or the histograms that it needs.
HEADRACE_HD static inline bool is_table(Effect::Kind kind) {
  return kind != Effect::Kind::kGray && kind != Effect::Kind::kSaturation && kind != Effect::Kind::kHue &&
         kind != Effect::Kind::kBlur && kind != Effect::Kind::kSharpness && kind != Effect::Kind::kPermute &&
         kind != Effect::Kind::kWarp && kind != Effect::Kind::kBoxBlur && kind != Effect::Kind::kMixChains &&
         kind != Effect::Kind::kTensorSaturation && kind != Effect::Kind::kTensorSharpness &&
         kind != Effect::Kind::kTensorHue && kind != Effect::Kind::kTensorWarp;
}

/// Whether an effect reads pixels other than the one it changes.
HEADRACE_HD static inline bool reads_other_pixels(Effect::Kind kind) {
  return kind == Effect::Kind::kBlur || kind == Effect::Kind::kSharpness || kind == Effect::Kind::kWarp ||
         kind == Effect::Kind::kBoxBlur || kind == Effect::Kind::kMixChains || kind == Effect::Kind::kTensorSharpness ||
         kind == Effect::Kind::kTensorWarp;
}

HEADRACE_HD static inline int least(int a, int b) { return a < b ? a : b; }
HEADRACE_HD static inline int most(int a, int b) { return a > b ? a : b; }

/// PIL.Image.blend of two bytes. Pillow's shortcuts for factors 0 and 1, and its clipping only outside these, do not
/// change the result. `factor`: within kMostFactor, so that the sum fits int.
HEADRACE_HD static inline int blended(int from, int to, float factor) {
  return clamp_to_byte(static_cast<int>(pillow_sum(static_cast<float>(from), factor, static_cast<float>(to - from))));
}

/// An entry of the table of an effect that needs no histogram. `mean`: for Contrast.
HEADRACE_HD static inline uint8_t mapped(const Effect& effect, int value, int mean) {
  switch (effect.kind) {
    case Effect::Kind::kBrightness:
      return static_cast<uint8_t>(blended(0, value, effect.factor));
    case Effect::Kind::kContrast:
      return static_cast<uint8_t>(blended(mean, value, effect.factor));
    case Effect::Kind::kInvert:
      return static_cast<uint8_t>(255 - value);
    case Effect::Kind::kPosterize:
      return static_cast<uint8_t>(value & effect.amount);
    case Effect::Kind::kSolarize:
      return static_cast<uint8_t>(value < effect.amount ? value : 255 - value);
    case Effect::Kind::kSolarizeAdd:
      return static_cast<uint8_t>(value < 128 ? least(value + effect.amount, 255) : value);
    case Effect::Kind::kScaleShift: {
      const float product = static_cast<float>(value) * effect.factor, sum = product + effect.rest;
      return static_cast<uint8_t>(sum > 0.0f ? (sum < 255.0f ? sum : 255.0f) : 0.0f);
    }
    default:
      return static_cast<uint8_t>(value);
  }
}

}  // namespace headrace
