// The boxes of RandomErasing, with the rounding rules of torchvision and timm.
#include "core/plan/plan_erase.h"

#include <cmath>

#include "core/plan/plan_geometry.h"

namespace headrace {
namespace {

constexpr int kTries = 10, kDrawsOfBox = 2 * kTries + 2;

// torchvision RandomErasing.get_params: ten tries of a box smaller than the image along both axes. `draws`: those of
// the box. The boxes of a sample share the area.
Box erased_box(const double* draws, Size image, int boxes) {
  const double area = static_cast<double>(image.height) * image.width;
  const double top = draws[2 * kTries], left = draws[2 * kTries + 1];
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double erased_area = area * draws[2 * attempt] / boxes, aspect = draws[2 * attempt + 1];
    const double exact_h = std::sqrt(erased_area * aspect), exact_w = std::sqrt(erased_area / aspect);
    // Compared before the conversion: with a user's scale the size may not fit int.
    if (!(exact_w < image.width && exact_h < image.height)) continue;
    const int h = round_half_even(exact_h), w = round_half_even(exact_w);
    if (h < image.height && w < image.width) {
      return {uniform_below(left, image.width - w + 1), uniform_below(top, image.height - h + 1), w, h};
    }
  }
  return {};
}

}  // namespace

int draws_of_erase(const Step& step) {
  const bool draws_boxes = step.boxes[1] > 0;
  return 1 + (draws_boxes ? 1 : 0) + (draws_boxes ? step.boxes[1] : 1) * (kDrawsOfBox + step.values);
}

std::vector<Erased> erased_boxes(const Step& step, const double* draws, Size image) {
  int boxes = 1;
  if (step.boxes[1] > 0) boxes = step.boxes[0] + uniform_below(*draws++, step.boxes[1] - step.boxes[0] + 1);
  std::vector<Erased> made;
  for (int i = 0; i < boxes; ++i, draws += kDrawsOfBox + step.values) {
    Erased erased{erased_box(draws, image, boxes), step.value, step.noise};
    const double* drawn = draws + kDrawsOfBox;
    if (step.noise == Noise::kElement) erased.state = static_cast<uint64_t>(std::ldexp(*drawn, 53)) << 11;
    if (step.noise == Noise::kChannel) {
      for (size_t c = 0; c < static_cast<size_t>(step.values); ++c) {
        erased.levels[c] = static_cast<uint16_t>(uniform_below(drawn[c], kNoiseLevels));
      }
    }
    if (erased.box.width > 0 && erased.box.height > 0) made.push_back(erased);
  }
  return made;
}

}  // namespace headrace
