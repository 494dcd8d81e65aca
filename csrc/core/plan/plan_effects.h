// The effects of steps that only change values.
#pragma once

#include "core/plan/plan.h"

namespace headrace {

/// The effect of a step from Brightness to Equalize, of PermuteChannels, Sharpness or SolarizeAdd. `draw`: the step's
/// draw, or its constant factor. Throws Error(kPlan) for negative bits of Posterize.
Effect value_effect(const Step& step, double draw);

}  // namespace headrace
