// The boxes of RandomErasing.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace headrace {

/// The number of draws that belong to an Erase step; the first says whether it is applied.
int draws_of_erase(const Step& step);

/// The boxes of an Erase step that is applied, in order, without those that have no pixels. `draws`: the step's own,
/// after the first.
std::vector<Erased> erased_boxes(const Step& step, const double* draws, Size image);

}  // namespace headrace
