// Converts Python's dicts to plans.
#include "bind/plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "bind/convert.h"
#include "core/base/pixel_math.h"
#include "core/plan/effect.h"

namespace py = pybind11;

namespace headrace {
namespace {

template <class T>
T field(const py::dict& from, const char* name, T otherwise) {
  return from.contains(name) ? from[name].cast<T>() : otherwise;
}

// A name, or the number of one of Pillow's.
Filter filter_of(const py::dict& from) {
  if (from.contains("filter") && py::isinstance<py::str>(from["filter"])) return to_filter(from["filter"]);
  return static_cast<Filter>(field(from, "filter", static_cast<int>(Filter::kBilinear)));
}

Box box_of(const py::handle& from) {
  const auto t = from.cast<std::array<int, 4>>();
  return {t[0], t[1], t[2], t[3]};
}

Take take_of(const py::dict& from) {
  Take take;
  take.box = box_of(from["box"]);
  take.flip_horizontal = field(from, "flip_horizontal", false);
  take.flip_vertical = field(from, "flip_vertical", false);
  take.gray = field(from, "gray", false);
  take.pad_mode = static_cast<PadMode>(field(from, "pad_mode", 0));
  take.fill = field(from, "fill", take.fill);
  return take;
}

// (perspective, filter, eight coefficients, (R, G, B), (width, height))
Warp warp_of(const py::handle& from) {
  const auto [perspective, filter, a, fill, out] =
      from.cast<std::tuple<bool, int, std::array<double, 8>, std::array<uint8_t, 3>, std::array<int, 2>>>();
  Warp warp{perspective, static_cast<Filter>(filter), {}, pack_rgbx(fill[0], fill[1], fill[2]), {out[0], out[1]}};
  std::copy(a.begin(), a.end(), warp.a);
  return warp;
}

// (matrix, bilinear, fill or None, sum of TensorFlag, whether its matrix product rounds once)
TensorWarp tensor_warp_of(const py::handle& from) {
  const auto [matrix, bilinear, fill, flags, fused_positions] =
      from.cast<std::tuple<std::array<double, 6>, bool, std::optional<std::array<double, 3>>, int, bool>>();
  TensorWarp warp;
  const auto rounded = [](double value) { return static_cast<float>(value); };
  std::transform(matrix.begin(), matrix.end(), warp.matrix.begin(), rounded);
  if (fill) std::transform(fill->begin(), fill->end(), warp.fill.begin(), rounded);
  warp.bilinear = bilinear;
  warp.filled = fill.has_value();
  warp.first_version = (flags & kFirstVersion) != 0;
  warp.fused = (flags & kFused) != 0;
  warp.fused_positions = fused_positions;
  return warp;
}

// (name of a step, its parameter or 0); (name of an effect on tensors, factor, sum of TensorFlag, maybe lanes of sums);
// or ("Blur", weights of a row, weights of a column), ("Warp", warp_of's tuple) or ("TensorWarp", tensor_warp_of's),
// whose numbers are appended to the plan's.
Effect effect_of(const py::handle& from, Plan& plan) {
  const auto parts = from.cast<py::tuple>();
  const auto kind = parts[0].cast<std::string>();
  if (kind == "Blur") {
    std::vector<float>& weights = plan.weights;
    const auto row = parts[1].cast<std::vector<float>>(), column = parts[2].cast<std::vector<float>>();
    const auto begin = static_cast<int>(weights.size());
    weights.insert(weights.end(), row.begin(), row.end());
    weights.insert(weights.end(), column.begin(), column.end());
    return {Effect::Kind::kBlur, 0, 0, static_cast<int>(row.size()), static_cast<int>(column.size()), begin};
  }
  if (kind == "Warp") {
    plan.warps.push_back(warp_of(parts[1]));
    return {Effect::Kind::kWarp, 0, static_cast<int>(plan.warps.size()) - 1};
  }
  if (kind == "TensorWarp") {
    plan.tensor_warps.push_back(tensor_warp_of(parts[1]));
    return {Effect::Kind::kTensorWarp, 0, static_cast<int>(plan.tensor_warps.size()) - 1};
  }
  const Effect::Kind* known = effect_named(kind);
  if (known == nullptr) throw py::value_error("unknown effect " + kind);
  const auto parameter = parts[1].cast<double>();
  if (!is_of_tensors(*known)) return pillow_effect(*known, parameter);
  Effect effect = tensor_effect(*known, parameter, parts[2].cast<int>());
  if (parts.size() > 3) effect.width = parts[3].cast<int>();
  if (effect.width < 0 || effect.width > kMostLanes) throw py::value_error("lanes: from 0 to 16");
  return effect;
}

}  // namespace

Plan to_plan(const py::dict& from) {
  Plan plan;
  for (const py::handle item : field(from, "stages", py::list())) {
    const auto given = item.cast<py::dict>();
    PlanStage stage{take_of(given), {}, filter_of(given), false, {}, {}};
    const auto size = given["resize"].cast<std::array<int, 2>>();
    stage.resize = {size[0], size[1]};
    stage.vertical_first = field(given, "vertical_first", false);
    if (given.contains("made")) {
      const auto made = given["made"].cast<std::array<int, 2>>();
      stage.made = {made[0], made[1]};
    }
    for (const py::handle effect : field(given, "effects", py::list())) {
      stage.effects.push_back(effect_of(effect, plan));
    }
    plan.stages.push_back(stage);
  }
  plan.last = take_of(from["last"]);
  return plan;
}

std::vector<GivenPlan> to_given_plans(const py::list& from) {
  std::vector<GivenPlan> plans;
  for (const py::handle one : from) {
    const auto [size, plan] = one.cast<std::pair<std::array<int, 2>, py::dict>>();
    plans.push_back({to_plan(plan), {size[0], size[1]}});
    for (const py::handle erased : field(plan, "erased", py::list())) {
      const auto [box, value] = erased.cast<std::pair<std::array<int, 4>, int>>();
      plans.back().plan.erased.push_back({{box[0], box[1], box[2], box[3]}, value});
    }
  }
  return plans;
}

std::vector<Plan> to_plans(const py::list& from) {
  std::vector<Plan> plans;
  for (const py::handle one : from) plans.push_back(to_plan(one.cast<py::dict>()));
  for (const Plan& one : plans) {
    if (one.last.box.size() != plans.front().last.box.size()) {
      throw std::invalid_argument("the plans of a call make outputs of one size");
    }
  }
  return plans;
}

}  // namespace headrace
