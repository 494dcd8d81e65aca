// A plan of one crop, one resize and a flip, as Python names it.
#pragma once

#include <array>

#include "../core/plan.h"

namespace headrace {

/// Box (left, top, width, height), vertical_first, flip.
using PlanTuple = std::array<int, 6>;

inline Plan plan_of(const PlanTuple& from, Size size, Filter filter) {
  PlanStage stage;
  stage.take.box = {from[0], from[1], from[2], from[3]};
  stage.resize = size;
  stage.filter = filter;
  stage.vertical_first = from[4] != 0;
  Plan plan;
  plan.last.box = {0, 0, size.width, size.height};
  plan.last.flip_horizontal = from[5] != 0;
  if (stage.take.box.size() == size) {  // no resize: the crop is what is taken
    plan.last.box = stage.take.box;
  } else {
    plan.stages.push_back(stage);
  }
  return plan;
}

}  // namespace headrace
