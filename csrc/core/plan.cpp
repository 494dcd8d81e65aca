// Resolves recipe + draws + image size into boxes, with the rounding rules of torchvision.
//
// Note [pass order]: Pillow resizes in two passes with 8-bit rounding between them, so the order shows in the pixels.
// Up to 12.1 the horizontal pass came first. From 12.2 an image over 100 times as high as wide that gets shorter is
// split into two resizes, the vertical one first. From 13.0 the vertical pass comes first wherever it removes enough
// rows.
#include "plan.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "error.h"
#include "pixel_math.h"

namespace headrace {
namespace {

// Python's round(): to the nearest integer, halves to the even one. The rounding mode is the default one in every
// thread.
int round_half_even(double value) { return static_cast<int>(std::nearbyint(value)); }

// torch.randint(0, n) from a uniform draw u in [0, 1).
int uniform_below(double u, int n) { return std::min(static_cast<int>(u * n), n - 1); }

std::string pair(int height, int width) { return "(" + std::to_string(height) + ", " + std::to_string(width) + ")"; }

bool vertical_first(PassOrder order, Size in, Size out) {
  if (in.width == out.width || in.height == out.height) return false;  // one pass alone
  switch (order) {
    case PassOrder::kHorizontalFirst:
      return false;
    case PassOrder::kTallSplit:
      return in.height > 100 * in.width && out.height < in.height;
    case PassOrder::kByReduction:
      return in.height > out.height && in.height - out.height > 2 * (in.width - out.width);
  }
  return false;
}

// Follows the image through the steps. `take_` is what has been cut from the last real image (size `source_`) so far.
class Resolver {
 public:
  Resolver(const Recipe& recipe, const double* draws, Size image) : recipe_(recipe), draws_(draws) {
    if (image.width < 1 || image.height < 1) throw Error(Stage::kPlan, "the image has no pixels");
    restart(image);
  }

  Plan run(size_t from) {
    const size_t end = recipe_.call_after(from);
    for (size_t i = from; i < end; ++i) apply(recipe_.steps[i]);
    if (end == recipe_.steps.size() && size() != recipe_.output) {
      throw Error(Stage::kPlan, "the transforms made " + pair(size().height, size().width) +
                                    " pixels (height, width) where the batch holds " +
                                    pair(recipe_.output.height, recipe_.output.width));
    }
    plan_.last = take_;
    return std::move(plan_);
  }

 private:
  Size size() const { return take_.box.size(); }

  void restart(Size image) {
    source_ = image;
    take_ = Take{};
    take_.box = {0, 0, image.width, image.height};
  }

  void apply(const Step& step) {
    switch (step.kind) {
      case Step::Kind::kRandomResizedCrop:
        return random_resized_crop(step);
      case Step::Kind::kResize:
        return resize({step.width, step.height}, step.filter);
      case Step::Kind::kResizeShorter:
        return resize(shorter_edge(step), step.filter);
      case Step::Kind::kCenterCrop:
        return center_crop(step);
      case Step::Kind::kRandomCrop:
        return random_crop(step);
      case Step::Kind::kHorizontalFlip:
        if (draws_[step.draw] < step.p) take_.flip_horizontal = !take_.flip_horizontal;
        return;
      case Step::Kind::kVerticalFlip:
        if (draws_[step.draw] < step.p) take_.flip_vertical = !take_.flip_vertical;
        return;
      case Step::Kind::kGrayscale:
        take_.gray = true;
        take_.fill.fill(luma(take_.fill[0], take_.fill[1], take_.fill[2]));
        return;
      case Step::Kind::kCall:
        return;  // the end of a segment
    }
  }

  void random_resized_crop(const Step& step) {
    const Box box = random_resized_box(step);
    if (box.width > 0 && box.height > 0) {
      crop(box);
    } else {
      // The fall-back's rounding can leave nothing of a sliver, and Pillow resizes nothing to black: here a pixel of
      // padding is resized.
      take_ = Take{};
      take_.box = {-1, -1, 1, 1};
    }
    resize({step.width, step.height}, step.filter);
  }

  // torchvision RandomResizedCrop.get_params: ten tries, then the largest centred box within the ratios.
  Box random_resized_box(const Step& step) const {
    const int width = size().width, height = size().height;
    const double area = static_cast<double>(height) * width;
    const double* draw = draws_ + step.draw;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double target_area = area * draw[2 * attempt];
      const double aspect = draw[2 * attempt + 1];
      const double exact_w = std::sqrt(target_area * aspect), exact_h = std::sqrt(target_area / aspect);
      // Compared before the conversion: a user's scale may ask for more pixels than an int holds.
      if (!(exact_w < width + 1.0 && exact_h < height + 1.0)) continue;
      const int w = round_half_even(exact_w), h = round_half_even(exact_h);
      if (0 < w && w <= width && 0 < h && h <= height) {
        return {uniform_below(draw[21], width - w + 1), uniform_below(draw[20], height - h + 1), w, h};
      }
    }
    const double in_ratio = static_cast<double>(width) / height;
    int w = width, h = height;
    if (in_ratio < step.min_ratio) {
      h = round_half_even(w / step.min_ratio);
    } else if (in_ratio > step.max_ratio) {
      w = round_half_even(h * step.max_ratio);
    }
    return {(width - w) / 2, (height - h) / 2, w, h};
  }

  // torchvision _compute_resized_output_size for one number.
  Size shorter_edge(const Step& step) const {
    const bool upright = size().width <= size().height;
    const double in_short = upright ? size().width : size().height;
    const double in_long = upright ? size().height : size().width;
    // The products are integers below 2^53, so each quotient is rounded once, as Python's is.
    double out_short = step.shorter, out_long = std::trunc(step.shorter * in_long / in_short);
    if (step.shorter == 0) {  // v2's Resize(None, max_size=n): the longer edge becomes n
      out_long = step.max_size;
      out_short = std::trunc(step.max_size * in_short / in_long);
    } else if (step.max_size > 0 && out_long > step.max_size) {
      out_short = std::trunc(step.max_size * out_short / out_long);
      out_long = step.max_size;
    }
    const int s = static_cast<int>(out_short), l = static_cast<int>(std::min(out_long, 1e9));
    return upright ? Size{s, l} : Size{l, s};
  }

  void center_crop(const Step& step) {
    const auto offset = [](int image, int crop) {
      return crop > image ? -((crop - image) / 2) : round_half_even((image - crop) / 2.0);
    };
    pad_and_crop({offset(size().width, step.width), offset(size().height, step.height), step.width, step.height},
                 PadMode::kConstant, {0, 0, 0});
  }

  void random_crop(const Step& step) {
    auto [left, top, right, bottom] = step.padding;
    int width = size().width + left + right, height = size().height + top + bottom;
    if (step.pad_if_needed && width < step.width) {
      left += step.width - width;
      width = 2 * step.width - width;
    }
    if (step.pad_if_needed && height < step.height) {
      top += step.height - height;
      height = 2 * step.height - height;
    }
    if (height < step.height || width < step.width) {
      throw Error(Stage::kPlan, "Required crop size " + pair(step.height, step.width) +
                                    " is larger than input image size " + pair(height, width) +
                                    "; RandomCrop's pad_if_needed=True pads such images");
    }
    pad_and_crop({uniform_below(draws_[step.draw + 1], width - step.width + 1) - left,
                  uniform_below(draws_[step.draw], height - step.height + 1) - top, step.width, step.height},
                 step.pad_mode, step.fill);
  }

  // `box` is in the coordinates of the image as the user sees it now and lies inside it.
  void crop(Box box) {
    if (take_.flip_horizontal) box.x = size().width - box.x - box.width;
    if (take_.flip_vertical) box.y = size().height - box.y - box.height;
    take_.box = {take_.box.x + box.x, take_.box.y + box.y, box.width, box.height};
  }

  void pad_and_crop(Box box, PadMode mode, std::array<uint8_t, 3> fill) {
    if (!box.inside(size())) {
      // Beyond a window there is padding even where its source has pixels, and a gray image may get a coloured border.
      const bool whole = take_.box == Box{0, 0, source_.width, source_.height};
      const bool gray_fill = fill[0] == fill[1] && fill[1] == fill[2];
      if (!whole || (take_.gray && !gray_fill)) make_real();
      take_.pad_mode = mode;
      take_.fill = fill;
    }
    crop(box);
  }

  void make_real() { push_stage(size(), Filter::kNearest); }

  void resize(Size to, Filter filter) {
    if (to.width < 1 || to.height < 1) throw Error(Stage::kPlan, "height and width must be > 0");
    if (to != size()) push_stage(to, filter);
  }

  void push_stage(Size to, Filter filter) {
    const bool vertical = !is_tensor_filter(filter) && vertical_first(recipe_.pass_order, size(), to);
    plan_.stages.push_back({take_, to, filter, vertical});
    restart(to);
  }

  const Recipe& recipe_;
  const double* draws_;
  Plan plan_;
  Size source_;
  Take take_;
};

}  // namespace

Plan resolve(const Recipe& recipe, const double* draws, Size image, size_t from) {
  return Resolver(recipe, draws, image).run(from);
}

}  // namespace headrace
