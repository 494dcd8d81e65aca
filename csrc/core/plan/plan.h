// Resolves recipe + draws + image size into a plan: boxes, sizes, flips, filters and effects for one sample.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/geometry.h"

namespace headrace {

enum class Filter : uint8_t {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5,  // so far Pillow's numbers
  // torch's antialiased kernels for bytes: the same windows, weights of 16 bits, the horizontal pass first.
  kTensorBilinear = 6,
  kTensorBicubic = 7
};
/// Whether a resize is torch's.
constexpr bool is_tensor_filter(Filter filter) { return filter >= Filter::kTensorBilinear; }

/// In which order Pillow takes the two passes of a resize; it changed twice, see Note [pass order] in plan.cpp.
enum class PassOrder : uint8_t { kHorizontalFirst, kTallSplit, kByReduction };

/// One step of a recipe, as lowered by headrace.lowering. A flat record: the fields a kind does not name are unused.
struct Step {
  enum class Kind : uint8_t {
    kRandomResizedCrop,
    kResize,
    kResizeShorter,
    kCenterCrop,
    kRandomCrop,
    kHorizontalFlip,
    kVerticalFlip,
    kGrayscale,
    kPad,
    kBrightness,
    kContrast,
    kSaturation,
    kHue,
    kInvert,
    kPosterize,
    kSolarize,
    kAutocontrast,
    kEqualize,
    kGaussianBlur,
    kWhen,
    kOneOf,
    kShuffled,
    kErase,
    kCall
  };
  Kind kind{};
  // RandomResizedCrop, Resize, CenterCrop, RandomCrop: the output size; GaussianBlur: the kernel's
  int height = 0, width = 0;
  int shorter = 0, max_size = 0;  // ResizeShorter: length of the shorter edge; 0 = no limit to the longer one
  Filter filter = Filter::kBilinear;
  double min_ratio = 0, max_ratio = 0;  // RandomResizedCrop: its fall-back when ten tries fail
  std::array<int, 4> padding{};         // Pad, RandomCrop: left, top, right, bottom
  bool pad_if_needed = false;
  std::array<uint8_t, 3> fill{};
  PadMode pad_mode = PadMode::kConstant;
  double p = 0;                             // flips, When, Erase: done when draw < p
  int draw = 0;                             // first column of the sample's draws that belongs to this step
  int bits = 0;                             // Posterize: that stay
  double threshold = 0;                     // Solarize: values from here on are inverted
  int value = 0;                            // Erase: which of the recipe's values is written
  int call = 0;                             // Call: its number among the recipe's calls of Python
  std::vector<std::vector<Step>> branches;  // When has one; OneOf, Shuffled
  std::vector<double> bounds;               // OneOf: the first branch whose bound is above the draw
};

struct Recipe {
  std::vector<Step> steps;
  int draws = 0;  // columns of the draws array
  Size output;    // of every sample
  PassOrder pass_order = PassOrder::kHorizontalFirst;
  int erases = 0;  // Erase steps, nested ones too: values that they write

  /// The first step from `from` on that Python does; steps.size() where there is none.
  size_t call_after(size_t from) const {
    while (from < steps.size() && steps[from].kind != Step::Kind::kCall) ++from;
    return from;
  }
  /// Where the steps behind the last call begin; 0 without calls.
  size_t last_segment() const {
    size_t begin = 0;
    for (size_t at = call_after(0); at < steps.size(); at = call_after(begin)) begin = at + 1;
    return begin;
  }
};

/// A window cut from an image, mirrored and turned gray: everything that moves or maps pixels without mixing them.
struct Take {
  Box box;  // in the coordinates of the image it is taken from; may reach outside it: padded by pad_mode
  bool flip_horizontal = false, flip_vertical = false;
  bool gray = false;  // R = G = B = Pillow's L of the pixel
  PadMode pad_mode = PadMode::kConstant;
  std::array<uint8_t, 3> fill{};
  bool operator==(const Take&) const = default;
};

/// Factors beyond do what this one does: each byte that differs from what it is blended with goes to 0 or 255.
inline constexpr float kMostFactor = 1e6f;

/// A change of values. Looking at more than one pixel, it looks at the whole image: at its mean L (Contrast), at its
/// histograms (Autocontrast, Equalize), or at the neighbours of each pixel (Blur).
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
    kBlur
  };
  Kind kind{};
  float factor = 0;  // Brightness, Contrast, Saturation; within kMostFactor
  int amount = 0;    // Hue: added to H; Posterize: the mask of the bits that stay; Solarize: the first value inverted
  // Blur: the kernel's size, and where its weights begin in the plan's: those of a row, then those of a column.
  int width = 0, height = 0, weights = 0;
  bool operator==(const Effect&) const = default;
};

/// A take, a resize, then effects on the whole image. `resize` equal to the take's size means: no resize.
struct PlanStage {
  Take take;
  Size resize;
  Filter filter = Filter::kBilinear;
  bool vertical_first = false;
  std::vector<Effect> effects{};
};

/// A box of the finished sample that is overwritten with the recipe's value of that number.
struct Erased {
  Box box;
  int value = 0;
  bool operator==(const Erased&) const = default;
};

/// stages in order, then `last`, whose size is the recipe's output, then the erased boxes in order.
struct Plan {
  std::vector<PlanStage> stages;
  Take last;
  std::vector<Erased> erased{};
  std::vector<float> weights{};  // of blurs
};

/// Exact: + - * / sqrt and round-half-even only, so that it agrees with the Python oracle to the integer.
/// Throws Error(kPlan) when a step cannot be applied to an image of this size (the words are torchvision's).
/// The steps are those from `from` up to the next call of Python, or to the end.
Plan resolve(const Recipe& recipe, const double* draws, Size image, size_t from = 0);

}  // namespace headrace
