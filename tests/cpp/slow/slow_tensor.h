// A slow reference for torchvision's operations on byte tensors: whole images, each written as torchvision has it.
#pragma once

#include "slow/slow_effects.h"

namespace headrace::test {

/// An effect of `plan` on a tensor. `size`: of the picture.
void apply_to_tensor(const Effect& effect, const Plan& plan, Size size, Picture& picture);

}  // namespace headrace::test
