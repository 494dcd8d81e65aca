// Resolves recipe + draws + image size into boxes and effects: follows one image through the steps.
#include "core/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/pixel_math.h"
#include "core/plan/plan_erase.h"
#include "core/plan/plan_geometry.h"
#include "core/plan/plan_warp.h"

namespace headrace {
namespace {

Effect tensor_effect_of(const Step& step, double factor) {
  const int flags =
      (step.first_version ? kFirstVersion : 0) | (step.fused ? kFused : 0) | (step.one_channel ? kOneChannel : 0);
  return tensor_effect(step.effect, factor, flags);
}

// Applies the steps in order. `take_` is the part taken so far of the last real image, which has size `source_`.
class Resolver {
 public:
  Resolver(const Recipe& recipe, const double* draws, Size image) : recipe_(recipe), draws_(draws) {
    if (image.width < 1 || image.height < 1) throw Error(Stage::kPlan, "the image has no pixels");
    restart(checked(image.width, image.height));
  }

  Plan run(size_t from) {
    const size_t end = recipe_.call_after(from);
    for (size_t i = from; i < end; ++i) apply(recipe_.steps[i]);
    if (end == recipe_.steps.size() && !recipe_.varies() && size() != recipe_.output) {
      throw Error(Stage::kPlan, "the transforms made " + shown_size(size().height, size().width) +
                                    " pixels (height, width) where the batch holds " +
                                    shown_size(recipe_.output.height, recipe_.output.width));
    }
    plan_.last = take_;
    return std::move(plan_);
  }

 private:
  Size size() const { return take_.box.size(); }

  // `count` draws of the sample, the first of them in column `first`.
  const double* drawn(int first, int count) const {
    if (first < 0 || count > recipe_.draws - first) throw Error(Stage::kPlan, "a step reads draws beyond the sample's");
    return draws_ + first;
  }

  void restart(Size image) {
    source_ = image;
    take_ = Take{};
    take_.box = whole_image(image);
  }

  void apply(const std::vector<Step>& steps) {
    for (const Step& step : steps) apply(step);
  }

  void apply(const Step& step) {
    const double draw = step.draw == kConstant ? step.parameter
                        : recipe_.draws > 0    ? *drawn(step.draw, 1)
                                               : 0;  // if any
    switch (step.kind) {
      case Step::Kind::kRandomResizedCrop:
        return random_resized_crop(step);
      case Step::Kind::kResize:
        return resize({step.width, step.height}, step.filter);
      case Step::Kind::kResizeShorter:
      case Step::Kind::kResizeKeepRatio:
      case Step::Kind::kScaleShorter:
      case Step::Kind::kScaleEdge:
      case Step::Kind::kFitPatches:
        return resize(computed_size(step, size()), step.filter);
      case Step::Kind::kRandomKeepRatio:
        return resize(random_keep_ratio_size(step, drawn(step.draw, 4), size()), step.filter);
      case Step::Kind::kRandomResize:
        return resize(drawn_shorter_edge(step, draw, size()), step.filter);
      case Step::Kind::kScaleJitter:
        return resize(jittered(step, draw, size()), step.filter);
      case Step::Kind::kZoomOut:
        return pad_to(zoomed_out(drawn(step.draw, 3), size()), step);
      case Step::Kind::kRandomPad:
        return pad_to(random_padding(step, drawn(step.draw, 2), size()), step);
      case Step::Kind::kRandomCropOrPad:
        return pad_to(random_window(step, drawn(step.draw, 2), size()), step);
      case Step::Kind::kCenterCrop:
        return center_crop(step);
      case Step::Kind::kCornerCrop:
        return corner_crop(step);
      case Step::Kind::kRandomCrop:
        return random_crop(step);
      case Step::Kind::kPad:
        return pad(step);
      case Step::Kind::kHorizontalFlip:
      case Step::Kind::kVerticalFlip:
        return draw < step.p ? flip(step.kind == Step::Kind::kHorizontalFlip) : void();
      case Step::Kind::kGrayscale:
        still_an_image();
        take_.gray = true;
        take_.fill.fill(luma(take_.fill[0], take_.fill[1], take_.fill[2]));
        return;
      case Step::Kind::kCall:
        return;  // the end of a segment
      case Step::Kind::kEffect:
        return effect(is_of_tensors(step.effect) ? tensor_effect_of(step, draw) : pillow_effect(step.effect, draw));
      case Step::Kind::kScaleShift:
        return effect(scale_shift(drawn(step.draw, 2)[0], drawn(step.draw, 2)[1]));
      case Step::Kind::kGaussianBlur:
        return blur(step);
      case Step::Kind::kBoxBlur:
        return box_blur(step.drawn ? drawn(step.draw, 4) + 1 : step.matrix.data());
      case Step::Kind::kWhen:
        return draw < step.p ? apply(step.branches.front()) : void();
      case Step::Kind::kOneOf: {
        const auto chosen = std::upper_bound(step.bounds.begin(), step.bounds.end() - 1, draw);
        return apply(step.branches[static_cast<size_t>(chosen - step.bounds.begin())]);
      }
      case Step::Kind::kShuffled:
        return apply_shuffled(step.branches, draw);
      case Step::Kind::kMixChains:
        return mix_chains(step);
      case Step::Kind::kErase:
        return draw < step.p ? erase(step) : void();
      case Step::Kind::kTensorWarp:
        return tensor_warp(step);
      case Step::Kind::kAffine:
        return warp(affine(step, draw, size()));
      case Step::Kind::kRotate:
        return rotate(rotation(step, step.matrix.data(), size()));
      case Step::Kind::kRandomRotate:
        return rotate(rotation(step, drawn(step.draw, 4) + 1, size()));
      case Step::Kind::kRandomAffine:
        return warp(random_affine(step, drawn(step.draw, 10), size()));
      case Step::Kind::kRandomPerspective:
        return warp(perspective(step, drawn(step.draw, 16) + 8, size()));
    }
  }

  // Applies all branches in the order of permutation floor(u n!) of itertools.permutations, u in [0, 1). The digits of
  // that number in the factorial base select the branches one after another.
  void apply_shuffled(const std::vector<std::vector<Step>>& branches, double u) {
    std::vector<size_t> rest(branches.size());
    std::iota(rest.begin(), rest.end(), size_t{0});
    uint64_t orders = 1;
    for (size_t n = 2; n <= rest.size(); ++n) orders *= n;
    uint64_t k = std::min(static_cast<uint64_t>(u * static_cast<double>(orders)), orders - 1);
    while (!rest.empty()) {
      orders /= rest.size();
      const auto next = rest.begin() + static_cast<ptrdiff_t>(k / orders);
      k %= orders;
      apply(branches[*next]);
      rest.erase(next);
    }
  }

  void random_resized_crop(const Step& step) {
    const Box box = random_resized_box(step, drawn(step.draw, 22), size());
    if (box.width > 0 && box.height > 0) {
      crop(box);
    } else {
      // For a sliver, rounding can make the fall-back box empty. Pillow resizes an empty image to black, which is the
      // resize of one pixel of padding here.
      take_ = Take{};
      take_.box = {-1, -1, 1, 1};
    }
    resize({step.width, step.height}, step.filter);
  }

  void flip(bool horizontal) {
    bool& flipped = horizontal ? take_.flip_horizontal : take_.flip_vertical;
    flipped = !flipped;
    for (Erased& erased : plan_.erased) {
      Box& box = erased.box;
      (horizontal ? box.x : box.y) = horizontal ? size().width - box.x - box.width : size().height - box.y - box.height;
      bool& turned = horizontal ? erased.flip_horizontal : erased.flip_vertical;
      turned = !turned;
    }
  }

  void effect(const Effect& effect) {
    still_an_image();
    make_real_for_effects();
    plan_.stages.back().effects.push_back(effect);
  }

  void blur(const Step& step) {
    if (step.width / 2 >= size().width || step.height / 2 >= size().height) {
      throw Error(Stage::kPlan, "GaussianBlur mirrors " + shown_size(step.height / 2, step.width / 2) +
                                    " pixels (height, width), which an image of " +
                                    shown_size(size().height, size().width) + " does not have");
    }
    make_real_unflipped();  // on the unflipped image the terms would be added in reverse order
    const int begin = static_cast<int>(plan_.weights.size());
    const double* weights = drawn(step.draw, 1 + step.width + step.height) + 1;
    for (int i = 0; i < step.width + step.height; ++i) plan_.weights.push_back(static_cast<float>(weights[i]));
    plan_.stages.back().effects.push_back({Effect::Kind::kBlur, 0, 0, step.width, step.height, begin});
  }

  void box_blur(const double* box) {
    still_an_image();
    make_real_for_effects();  // the box is the same whether flipped or not
    plan_.stages.back().effects.push_back({Effect::Kind::kBoxBlur, 0, static_cast<int>(std::min(box[0], 1e9)),
                                           static_cast<int>(box[1]), static_cast<int>(box[2])});
  }

  void rotate(const Rotation& rotation) {
    if (rotation.kind == Rotation::Kind::kWarp) return warp(rotation.warp);
    still_an_image();
    if (rotation.kind == Rotation::Kind::kNothing) return;
    if (in_chain_) return warp(half_turn(size()));
    flip(true);
    flip(false);
  }

  void warp(const Warp& warp) {
    make_real_unflipped();
    if (warp.out.width < 1 || warp.out.height < 1) throw Error(Stage::kPlan, "the rotation leaves no pixels");
    const Size out = checked(warp.out.width, warp.out.height);
    plan_.stages.back().effects.push_back({Effect::Kind::kWarp, 0, static_cast<int>(plan_.warps.size())});
    plan_.warps.push_back(warp);
    if (out == size()) return;
    plan_.stages.back().made = out;
    restart(out);
  }

  void tensor_warp(const Step& step) {
    make_real_unflipped();
    plan_.tensor_warps.push_back(headrace::tensor_warp(step));
    effect({Effect::Kind::kTensorWarp, 0, static_cast<int>(plan_.tensor_warps.size()) - 1});
  }

  // Each chain starts from the same real image.
  void mix_chains(const Step& step) {
    if (in_chain_) throw Error(Stage::kPlan, "chains cannot be mixed inside a chain");
    make_real_unflipped();
    const size_t stages = plan_.stages.size();
    std::vector<Effect> before = std::exchange(plan_.stages.back().effects, {});
    const double* weight = drawn(step.draw, static_cast<int>(step.branches.size()) + 1);
    ChainMix mix{step.blended, {}, static_cast<float>(weight[step.branches.size()]), step.summed};
    in_chain_ = true;
    for (const std::vector<Step>& branch : step.branches) {
      apply(branch);
      make_real_unflipped();
      if (plan_.stages.size() != stages || !takes_whole_image() || plan_.stages.back().made.width > 0) {
        throw Error(Stage::kPlan, "a chain that is mixed may change colours and warp, but not mirror, crop or resize");
      }
      mix.chains.push_back({static_cast<float>(*weight++), std::exchange(plan_.stages.back().effects, {})});
    }
    in_chain_ = false;
    plan_.stages.back().effects = std::move(before);
    plan_.stages.back().effects.push_back({Effect::Kind::kMixChains, 0, static_cast<int>(plan_.chain_mixes.size())});
    plan_.chain_mixes.push_back(std::move(mix));
  }

  // For effects that depend on the positions of pixels: pending flips are applied first.
  void make_real_unflipped() {
    still_an_image();
    if (take_.flip_horizontal || take_.flip_vertical) {
      make_real();
    } else {
      make_real_for_effects();
    }
  }

  // Flips stay pending: effects do not depend on them, and a take without flips needs no buffer for the whole image.
  void make_real_for_effects() {
    if (takes_whole_image() && !plan_.stages.empty()) {
      if (take_.gray) plan_.stages.back().effects.push_back({Effect::Kind::kGray});
      take_.gray = false;
      return;
    }
    const bool horizontal = take_.flip_horizontal, vertical = take_.flip_vertical;
    take_.flip_horizontal = take_.flip_vertical = false;
    make_real();
    take_.flip_horizontal = horizontal;
    take_.flip_vertical = vertical;
  }

  void erase(const Step& step) {
    const std::vector<Erased> boxes = erased_boxes(step, drawn(step.draw, draws_of_erase(step)) + 1, size());
    plan_.erased.insert(plan_.erased.end(), boxes.begin(), boxes.end());
  }

  void center_crop(const Step& step) {
    const auto [width, height] = checked(step.width, step.height);
    pad_and_crop({center_offset(step.center_rule, size().width, width),
                  center_offset(step.center_rule, size().height, height), width, height},
                 step.pad_mode, step.fill);
  }

  void corner_crop(const Step& step) {
    const int more_rows = size().height - step.height, more_columns = size().width - step.width;
    if (more_rows < 0 || more_columns < 0) {
      throw Error(Stage::kPlan, "Requested crop size " + shown_size(step.height, step.width) +
                                    " is bigger than input size " + shown_size(size().height, size().width));
    }
    crop({step.at_right ? more_columns : 0, step.at_bottom ? more_rows : 0, step.width, step.height});
  }

  Size padded(const std::array<int, 4>& padding) const {
    const auto [left, top, right, bottom] = padding;
    return checked(int64_t{size().width} + left + right, int64_t{size().height} + top + bottom);
  }

  void random_crop(const Step& step) {
    auto [left, top, right, bottom] = step.padding;
    auto [width, height] = padded(step.padding);
    if (step.pad_if_needed && width < step.width) {
      left += step.width - width;
      width = checked(int64_t{2} * step.width - width, 1).width;
    }
    if (step.pad_if_needed && height < step.height) {
      top += step.height - height;
      height = checked(1, int64_t{2} * step.height - height).height;
    }
    if (height < step.height || width < step.width) {
      throw Error(Stage::kPlan, "Required crop size " + shown_size(step.height, step.width) +
                                    " is larger than input image size " + shown_size(height, width) +
                                    "; RandomCrop's pad_if_needed=True pads such images");
    }
    pad_and_crop({uniform_below(drawn(step.draw, 2)[1], width - step.width + 1) - left,
                  uniform_below(drawn(step.draw, 2)[0], height - step.height + 1) - top, step.width, step.height},
                 step.pad_mode, step.fill);
  }

  void pad(const Step& step) {
    const auto [width, height] = padded(step.padding);
    const Box box{-step.padding[0], -step.padding[1], width, height};
    if (box.width < 1 || box.height < 1) throw Error(Stage::kPlan, "Pad removes every pixel of the image");
    pad_and_crop(box, step.pad_mode, step.fill);
  }

  // `box`: the output, in the coordinates of the image after the steps so far.
  void pad_to(const Box& box, const Step& step) {
    checked(box.width, box.height);
    pad_and_crop(box, step.pad_mode, step.fill);
  }

  // `box` is in the coordinates of the image after the steps so far. Only pad_and_crop passes one that reaches outside.
  void crop(Box box) {
    still_an_image();
    if (take_.flip_horizontal) box.x = size().width - box.x - box.width;
    if (take_.flip_vertical) box.y = size().height - box.y - box.height;
    take_.box = {take_.box.x + box.x, take_.box.y + box.y, box.width, box.height};
  }

  void pad_and_crop(Box box, PadMode mode, std::array<uint8_t, 3> fill) {
    if (!box.inside(size())) {
      // Padding surrounds a window even where its source has pixels, and a gray image may get a coloured border.
      const bool gray_fill = fill[0] == fill[1] && fill[1] == fill[2];
      if (!takes_whole_image() || (take_.gray && !gray_fill)) make_real();
      take_.pad_mode = mode;
      take_.fill = fill;
    }
    crop(box);
  }

  bool takes_whole_image() const { return take_.box == whole_image(source_); }

  void make_real() { push_stage(size(), Filter::kNearest); }

  // Boxes are erased in the finished sample, so only flips and other Erase steps may follow an Erase step.
  void still_an_image() const {
    if (!plan_.erased.empty()) throw Error(Stage::kPlan, "only flips can follow RandomErasing; move it to the end");
  }

  void resize(Size to, Filter filter) {
    if (to.width < 1 || to.height < 1) throw Error(Stage::kPlan, "height and width must be > 0");
    if (to != size()) push_stage(checked(to.width, to.height), filter);
  }

  void push_stage(Size to, Filter filter) {
    still_an_image();
    const bool vertical = is_pillow_filter(filter) && vertical_first(recipe_.pass_order, size(), to);
    plan_.stages.push_back({take_, to, filter, vertical});
    restart(to);
  }

  const Recipe& recipe_;
  const double* draws_;
  Plan plan_;
  Size source_;
  Take take_;
  bool in_chain_ = false;
};

}  // namespace

Plan resolve(const Recipe& recipe, const double* draws, Size image, size_t from) {
  return Resolver(recipe, draws, image).run(from);
}

}  // namespace headrace
