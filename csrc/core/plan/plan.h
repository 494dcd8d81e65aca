// Resolves recipe + draws + image size into a plan: boxes, sizes, flips, filters and effects for one sample.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/geometry.h"
#include "core/plan/effect.h"
#include "core/plan/erased.h"

namespace headrace {

enum class Filter : uint8_t {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5,  // Pillow's numbers up to this one
  // torch's antialiased kernels for bytes: the same windows, 16-bit weights, the horizontal pass first.
  kTensorBilinear = 6,
  kTensorBicubic = 7,
  // torch's antialiased kernels for floats, rounded to bytes: products rounded, or fused with the sums.
  kFloatBilinear = 8,
  kFloatBicubic = 9,
  kFusedBilinear = 10,
  kFusedBicubic = 11,
  // torch's choice of the nearest pixel, by positions in float32: "nearest" and "nearest-exact".
  kTensorNearest = 12,
  kTensorNearestExact = 13,
  // OpenCV's bilinear kernel for bytes: 11-bit weights of two pixels, the horizontal pass first.
  kOpencvBilinear = 14
};
/// Whether the filter is one of Pillow's, whose order of passes depends on the sizes.
constexpr bool is_pillow_filter(Filter filter) { return filter < Filter::kTensorBilinear; }
/// Whether the filter takes single pixels.
constexpr bool is_nearest(Filter filter) {
  return filter == Filter::kNearest || filter == Filter::kTensorNearest || filter == Filter::kTensorNearestExact;
}
/// Whether it is one of torch's for floats.
constexpr bool is_float_filter(Filter filter) {
  return filter >= Filter::kFloatBilinear && filter <= Filter::kFusedBicubic;
}
constexpr bool is_fused(Filter filter) { return filter == Filter::kFusedBilinear || filter == Filter::kFusedBicubic; }
/// Whether a filter for floats is cubic.
constexpr bool is_cubic(Filter filter) { return filter == Filter::kFloatBicubic || filter == Filter::kFusedBicubic; }

/// The order of Pillow's two passes of a resize. It changed twice, see Note [pass order] in plan_geometry.cpp.
enum class PassOrder : uint8_t { kHorizontalFirst, kTallSplit, kByReduction };

/// How a CenterCrop rounds half the difference between the image and the crop: torchvision's rule (to the even number,
/// towards zero if the image is smaller), towards zero, or down.
enum class CenterRule : uint8_t { kEven, kTowardsZero, kDown };

/// Step::draw of an effect whose parameter is the same for every sample.
inline constexpr int kConstant = -1;

/// One step of a recipe, as lowered by headrace._lowering. A flat record: a kind uses only the fields that name it.
struct Step {
  enum class Kind : uint8_t {
    kRandomResizedCrop,
    kResize,
    kResizeShorter,
    kResizeKeepRatio,
    kCenterCrop,
    kRandomCrop,
    kHorizontalFlip,
    kVerticalFlip,
    kGrayscale,
    kPad,
    kEffect,
    kGaussianBlur,
    kWhen,
    kOneOf,
    kShuffled,
    kErase,
    kCall,
    kAffine,
    kRotate,
    kRandomRotate,
    kRandomAffine,
    kRandomPerspective,
    kCornerCrop,
    kRandomResize,
    kScaleShorter,
    kScaleJitter,
    kZoomOut,
    kRandomPad,
    kRandomCropOrPad,
    kRandomKeepRatio,
    kBoxBlur,
    kMixChains,
    kTensorWarp,
    kScaleEdge,
    kScaleShift,
    kFitPatches
  };
  Kind kind{};
  Effect::Kind effect{};  // Effect
  // RandomResizedCrop, Resize, CenterCrop, CornerCrop, RandomCrop, RandomCropOrPad: the output size; RandomPad: the
  // smallest one; ResizeKeepRatio, RandomKeepRatio, ScaleJitter: the target's; GaussianBlur: the kernel's
  int height = 0, width = 0;
  // ResizeShorter, ScaleShorter: length of the shorter edge; 0 = no limit to the longer one. RandomResize: the shortest
  // shorter edge, and the first one that is too long
  // ScaleEdge: length of the shorter edge, or of the longer one
  int shorter = 0, max_size = 0;
  bool of_longer = false;                              // ScaleEdge
  int patch = 0, least_patches = 0, most_patches = 0;  // FitPatches: edge of a patch; how many there may be
  double longest = 0;  // ResizeKeepRatio, RandomKeepRatio: share of the edge that is longer in terms of the target
  Filter filter = Filter::kBilinear;
  CenterRule center_rule = CenterRule::kEven;  // CenterCrop
  bool at_bottom = false, at_right = false;    // CornerCrop
  double min_ratio = 0, max_ratio = 0;         // RandomResizedCrop: limits of the box after ten failed tries
  std::array<int, 4> padding{};                // Pad, RandomCrop: left, top, right, bottom
  bool pad_if_needed = false;
  std::array<uint8_t, 3> fill{};  // steps that pad
  PadMode pad_mode = PadMode::kConstant;
  double p = 0;                // flips, When, Erase: applied if draw < p; RandomKeepRatio: of a scale
  double aspect_p = 0;         // RandomKeepRatio: of an aspect ratio
  bool of_area = false;        // RandomKeepRatio: the scale is one of the area that a crop would have
  int draw = 0;                // first column of the sample's draws that belongs to this step; kConstant
  double parameter = 0;        // Effect: used if draw is kConstant
  bool blended = false;        // MixChains: each chain is blended with those before, in bytes
  bool summed = false;         // MixChains: the image has a weight as each chain has
  bool drawn = false;          // BoxBlur: the numbers of the box are draws
  int value = 0;               // Erase: row of the recipe's values to write
  Noise noise = Noise::kNone;  // Erase: draws rows, starting at `value`
  int values = 0;              // Erase: columns of each box that give its values
  std::array<int, 2> boxes{};  // Erase: the fewest and the most, if their number is drawn
  int call = 0;                // Call: index among the recipe's Python calls
  // Affine: Pillow's matrix; BoxBlur: the three numbers of the box, unless they are drawn; Rotate: the angle in
  // degrees, in [0, 360), and the cosine and sine of Pillow's matrix
  std::array<double, 6> matrix{};
  int coefficient = -1;            // Affine: number of the coefficient that is the draw; -1: none is
  bool expand = false;             // RandomRotate: the output holds the whole rotated image
  bool centered = true;            // RandomRotate, RandomAffine: about the image's centre, otherwise about `center`
  std::array<double, 2> center{};  // x, y
  bool first_version = false;      // RandomAffine, steps on tensors: the order of operations of torchvision v1
  bool fused = false;              // steps on tensors: torch rounds a sum with a product once
  bool fused_positions = false;    // TensorWarp: so does its matrix product
  bool one_channel = false;        // TensorContrast: of a gray image
  bool filled = false;             // TensorWarp: `color` is mixed with the pixels at the border
  std::array<double, 3> color{};
  std::vector<std::vector<Step>> branches;  // When has one; OneOf, Shuffled, MixChains
  std::vector<double> bounds;               // OneOf: selects the first branch whose bound exceeds the draw
};

struct Recipe {
  std::vector<Step> steps;
  int draws = 0;  // columns of the draws array
  Size output;    // of every sample; empty: the sizes vary
  PassOrder pass_order = PassOrder::kHorizontalFirst;
  int erases = 0;  // rows of the values that Erase steps write, nested ones too

  /// Whether samples have different sizes.
  bool varies() const { return output.width == 0; }

  /// Index of the first Python call at or after step `from`; steps.size() if there is none.
  size_t call_after(size_t from) const {
    while (from < steps.size() && steps[from].kind != Step::Kind::kCall) ++from;
    return from;
  }
  /// Index of the first step after the last Python call; 0 without calls.
  size_t last_segment() const {
    size_t begin = 0;
    for (size_t at = call_after(0); at < steps.size(); at = call_after(begin)) begin = at + 1;
    return begin;
  }
};

/// A window of an image, mirrored and converted to gray: all operations that move or map pixels without mixing them.
struct Take {
  Box box;  // in the coordinates of the source image; pixels outside it are padded by pad_mode
  bool flip_horizontal = false, flip_vertical = false;
  bool gray = false;  // R = G = B = Pillow's L of the pixel
  PadMode pad_mode = PadMode::kConstant;
  std::array<uint8_t, 3> fill{};
  bool operator==(const Take&) const = default;
};

/// A take, a resize, then effects on the whole image. `resize` equal to the take's size: no resize.
struct PlanStage {
  Take take;
  Size resize;
  Filter filter = Filter::kBilinear;
  bool vertical_first = false;
  std::vector<Effect> effects{};
  Size made{};  // after the effects; empty: as `resize`

  Size made_size() const { return made.width > 0 ? made : resize; }
};

/// PIL.Image.transform: each pixel comes from another position in the image, or is the fill.
struct Warp {
  bool perspective = false;          // otherwise affine
  Filter filter = Filter::kNearest;  // nearest, bilinear or bicubic
  double a[8] = {};                  // Pillow's coefficients: six, or eight of a perspective
  uint32_t fill = 0;                 // packed
  Size out;                          // the image that it makes
  bool operator==(const Warp&) const = default;
};

/// torchvision's affine map of a byte tensor: a matrix product gives the positions, grid_sample the pixels there.
struct TensorWarp {
  // Pixel (x, y) comes from (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]), in pixels from the centre of the image.
  std::array<float, 6> matrix{};
  bool bilinear = false;         // otherwise nearest
  bool filled = false;           // `fill` instead of 0 outside the image
  bool first_version = false;    // the fill is mixed as torchvision v1 does
  bool fused = false;            // torch rounds a sum with a product once
  bool fused_positions = false;  // so does its matrix product
  std::array<float, 3> fill{};
  bool operator==(const TensorWarp&) const = default;
};

/// Several chains of effects, each on a copy of the image, and their mix with the image. No chain changes its size.
struct ChainMix {
  struct Chain {
    float weight = 0;
    std::vector<Effect> effects;  // without another mix
    bool operator==(const Chain&) const = default;
  };
  // false: the chains' weighted sums, cut to bytes, blended with the image. true: the image blended with one chain
  // after another.
  bool blended = false;
  std::vector<Chain> chains;
  float factor = 0;     // of the blend with the image; none if `blended`; the image's own weight if `summed`
  bool summed = false;  // the weighted sum of the image and the chains, cut to bytes
  bool operator==(const ChainMix&) const = default;
};

/// The stages in order, then `last`, then the erased boxes in order. `last` has the recipe's output size if there is
/// one, unless a Python call follows.
struct Plan {
  std::vector<PlanStage> stages;
  Take last;
  std::vector<Erased> erased{};
  std::vector<float> weights{};  // of blurs
  std::vector<Warp> warps{};
  std::vector<ChainMix> chain_mixes{};
  std::vector<TensorWarp> tensor_warps{};
};

/// The plan of the steps from `from` up to the next Python call or the end. `draws`: the sample's. It agrees with the
/// Python oracle to the integer: it uses only + - * / sqrt and roundings to integers, which are alike everywhere.
/// Throws Error(kPlan) if a step cannot be applied to an image of this size.
Plan resolve(const Recipe& recipe, const double* draws, Size image, size_t from = 0);

}  // namespace headrace
