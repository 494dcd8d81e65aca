// A slow reference for effects: whole images, one effect after the other, each written as it is defined.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace headrace::test {

using Pixel = std::array<int, 3>;
using Picture = std::vector<Pixel>;

/// An effect of `plan`. `size`: of the picture.
void apply(const Effect& effect, const Plan& plan, Size size, Picture& picture);

}  // namespace headrace::test
