// Reads the fields of steps: a field of the class that nothing reads is an error.
#include "bind/step_fields.h"

#include <pybind11/stl.h>

#include <map>

namespace py = pybind11;

namespace headrace {
namespace {

// Fields that only Python reads: for draws, for the oracle, for values that the recipe holds itself, for calls.
const std::map<std::string, std::set<std::string>> kForPython = {
    {"RandomResizedCrop", {"scale"}},
    {"Grayscale", {"channels"}},
    {"GaussianBlur", {"softmax"}},
    {"Rotate", {"angle"}},  // the core takes `turn`, which is computed from it
    {"RandomPerspective", {"distortion"}},
    {"Erase", {"value", "after"}},
    {"EraseBoxes", {"value", "after"}},
    {"Call", {"name", "draw", "process_wide", "metadata", "finishes", "size", "function"}},
};

}  // namespace

StepFields::StepFields(const py::handle& step)
    : step_(step), kind_(py::cast<std::string>(py::type::handle_of(step).attr("__name__"))) {}

std::vector<std::string> StepFields::names() const {
  return py::cast<std::vector<std::string>>(py::list(step_.attr("__dataclass_fields__")));
}

void StepFields::check() const {
  const auto known = kForPython.find(kind_);
  std::set<std::string> others = known == kForPython.end() ? std::set<std::string>{} : known->second;
  for (const std::string& name : names()) {
    if (others.erase(name) == 0 && !read_.contains(name)) {
      throw py::type_error("the native core does not read the field " + name + " of the step " + kind_);
    }
  }
  if (!others.empty()) {
    throw py::type_error("the step " + kind_ + " has no field " + *others.begin() + ", which the native core lists");
  }
}

}  // namespace headrace
