// Plans as Python passes them: their one encoding, for tests, headrace.ops and bench/.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "core/pipeline/batch/batch.h"
#include "core/plan/plan.h"

namespace headrace {

/// Converts a dict {"stages": [...], "last": take}. A take is a dict {box: (x, y, width, height),
/// flip_horizontal, flip_vertical, gray, pad_mode, fill}; a stage is a take with {resize: (width, height), filter (its
/// name, or the number of one of Pillow's), vertical_first, effects}. An effect is (name of a step, its parameter or
/// 0), as in effect.h, or ("Blur", row, column) with a kernel's weights, or ("Warp", (perspective, filter, eight
/// coefficients, fill, (width, height) that it makes)). Omitted entries have the defaults of plan.h.
Plan to_plan(const pybind11::dict& from);

/// Converts a list of pairs: (width, height) of an image, and such a dict, which may also have {"erased": [((x, y,
/// width, height), row of the recipe's values), ...]}.
std::vector<GivenPlan> to_given_plans(const pybind11::list& from);

/// Converts a list of such dicts. Throws std::invalid_argument where their outputs differ in size.
std::vector<Plan> to_plans(const pybind11::list& from);

}  // namespace headrace
