// The sizes and boxes of single steps, with the rounding rules of torchvision.
#pragma once

#include "core/plan/plan.h"

namespace headrace {

/// Python's round(): to the nearest integer, halves to the even one. The rounding mode is the default one in every
/// thread.
int round_half_even(double value);

/// torch.randint(0, n) from a uniform draw u in [0, 1).
int uniform_below(double u, int n);

/// Whether Pillow takes the vertical pass of a resize first; see Note [pass order] in plan_geometry.cpp.
bool vertical_first(PassOrder order, Size in, Size out);

/// The box of a RandomResizedCrop; of a sliver its fall-back can leave nothing. `draws`: the step's own.
Box random_resized_box(const Step& step, const double* draws, Size image);

/// The size to which ResizeShorter brings an image.
Size shorter_edge(const Step& step, Size image);

/// The box of an Erase, empty where nothing is erased. `draws`: the step's own, its p left out.
Box erased_box(const double* draws, Size image);

}  // namespace headrace
