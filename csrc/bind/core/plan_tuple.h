// A plan of one crop, one resize and a flip, as Python names it.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "bind/convert.h"
#include "core/plan/plan.h"
#include "core/rows/output.h"

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

inline std::vector<Plan> plans_of(const std::vector<PlanTuple>& from, Size size, Filter filter) {
  std::vector<Plan> plans;
  for (const PlanTuple& one : from) plans.push_back(plan_of(one, size, filter));
  return plans;
}

/// A table of three channels, and how outputs of this size lie in memory with its elements. Valid while `buffer` is.
struct ElementTable {
  ElementTable(const pybind11::buffer& buffer, Size size, bool nhwc) : info(bytes_of(buffer)) {
    entries = {static_cast<const uint8_t*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)};
    const int element_bytes = static_cast<int>(entries.size() / (3 * 256));
    layout = nhwc ? channels_last(3, size, element_bytes) : planar(3, size, element_bytes);
  }

  pybind11::buffer_info info;
  std::span<const uint8_t> entries;
  OutputLayout layout;
};

}  // namespace headrace
