// Resolves recipe + draws + image size into a plan: boxes, sizes, flips and filters for one sample.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "geometry.h"

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

enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kSymmetric };

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
    kCall
  };
  Kind kind{};
  int height = 0, width = 0;      // RandomResizedCrop, Resize, CenterCrop, RandomCrop: the output size
  int shorter = 0, max_size = 0;  // ResizeShorter: length of the shorter edge; 0 = no limit to the longer one
  Filter filter = Filter::kBilinear;
  double min_ratio = 0, max_ratio = 0;  // RandomResizedCrop: its fall-back when ten tries fail
  std::array<int, 4> padding{};         // RandomCrop: left, top, right, bottom
  bool pad_if_needed = false;
  std::array<uint8_t, 3> fill{};
  PadMode pad_mode = PadMode::kConstant;
  double p = 0;  // flips: done when draw < p
  int draw = 0;  // first column of the sample's draws that belongs to this step
  int call = 0;  // Call: its number among the recipe's calls of Python
};

struct Recipe {
  std::vector<Step> steps;
  int draws = 0;  // columns of the draws array
  Size output;    // of every sample
  PassOrder pass_order = PassOrder::kHorizontalFirst;

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

/// A take followed by a resize. `resize` equal to the take's size means: no resize, only the take is made real.

struct PlanStage {
  Take take;
  Size resize;
  Filter filter = Filter::kBilinear;
  bool vertical_first = false;
};

/// stages in order, then `last`, whose size is the recipe's output.
struct Plan {
  std::vector<PlanStage> stages;
  Take last;
};

/// Exact: + - * / sqrt and round-half-even only, so that it agrees with the Python oracle to the integer.
/// Throws Error(kPlan) when a step cannot be applied to an image of this size (the words are torchvision's).
/// The steps are those from `from` up to the next call of Python, or to the end.
Plan resolve(const Recipe& recipe, const double* draws, Size image, size_t from = 0);

}  // namespace headrace
