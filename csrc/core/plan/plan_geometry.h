// The sizes and boxes of single steps, with the rounding rules of torchvision, timm and transformers.
#pragma once

#include <string>

#include "core/plan/plan.h"

namespace headrace {

/// Python's round(): to the nearest integer, halves to the even one. Requires the default rounding mode.
int round_half_even(double value);

/// torch.randint(0, n) from a uniform draw u in [0, 1).
int uniform_below(double u, int n);

/// Whether Pillow takes the vertical pass of a resize first; see Note [pass order] in plan_geometry.cpp.
bool vertical_first(PassOrder order, Size in, Size out);

/// The box of a RandomResizedCrop; it can be empty if the image is a sliver. `draws`: the step's own.
Box random_resized_box(const Step& step, const double* draws, Size image);

/// The size to which ResizeShorter resizes an image.
Size shorter_edge(const Step& step, Size image);

/// The size to which ResizeKeepRatio resizes an image.
Size keep_ratio_size(const Step& step, Size image);

/// The size to which RandomKeepRatio resizes an image. `draws`: the step's own.
Size random_keep_ratio_size(const Step& step, const double* draws, Size image);

/// The size to which RandomResize resizes an image. `u`: the step's draw.
Size drawn_shorter_edge(const Step& step, double u, Size image);

/// The size to which ScaleShorter resizes an image.
Size scaled_shorter(const Step& step, Size image);
Size scaled_edge(const Step& step, Size image);

/// The size to which FitPatches resizes an image: multiples of the patch, `most_patches` in all at most.
Size fitted_to_patches(const Step& step, Size image);

/// The size to which one of the steps above, that draws nothing, resizes an image.
Size computed_size(const Step& step, Size image);

/// The size to which ScaleJitter resizes an image.
Size jittered(const Step& step, double scale, Size image);

/// The output of ZoomOut, RandomPad and RandomCropOrPad in the image's coordinates. `draws`: the step's own.
Box zoomed_out(const double* draws, Size image);
Box random_padding(const Step& step, const double* draws, Size image);
Box random_window(const Step& step, const double* draws, Size image);

/// The first pixel of a CenterCrop along an edge; negative if the image is padded.
int center_offset(CenterRule rule, int image, int crop);

/// The text "(height, width)" for messages.
std::string shown_size(int64_t height, int64_t width);

/// The size of an image that a step makes. Throws Error(kPlan) if it is too large.
Size checked(int64_t width, int64_t height);

}  // namespace headrace
