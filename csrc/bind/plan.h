// Plans as Python writes them: the one encoding of a plan at the border, for tests, headrace.ops and bench/.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "core/plan/plan.h"

namespace headrace {

/// From a dict {"stages": [...], "last": take}. A take is a dict {box: (x, y, width, height), flip_horizontal,
/// flip_vertical, gray, pad_mode, fill}; a stage is a take with {resize: (width, height), filter, vertical_first,
/// effects}. An effect is (name, factor, amount), as plan.h has them. What is left out is as in plan.h.
Plan to_plan(const pybind11::dict& from);

/// Plans whose outputs have one size. Throws std::invalid_argument where they do not.
std::vector<Plan> to_plans(const pybind11::list& from);

}  // namespace headrace
