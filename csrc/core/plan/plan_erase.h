// The boxes of RandomErasing.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace headrace {

/// The boxes of an Erase step that is applied, in order, without those that have no pixels. `draws`: the sample's.
std::vector<Erased> erased_boxes(const Step& step, const double* draws, Size image);

}  // namespace headrace
