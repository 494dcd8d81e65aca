// The fields of a step of headrace._recipe.steps, and which of them have been read: none may be passed over.
#pragma once

#include <pybind11/pybind11.h>

#include <set>
#include <string>
#include <vector>

namespace headrace {

/// Reads the fields of one step, whose class is a dataclass. A field that nothing reads would silently be a default of
/// the core's, so `check` refuses it, unless it is one that only Python uses: see kForPython.
class StepFields {
 public:
  explicit StepFields(const pybind11::handle& step);

  /// The name of the step's class.
  const std::string& kind() const { return kind_; }

  /// The fields of the class.
  std::vector<std::string> names() const;

  /// Whether the step has this attribute.
  bool has(const char* name) const { return pybind11::hasattr(step_, name); }

  /// The attribute. Raises AttributeError where there is none.
  pybind11::object attr(const char* name) {
    read_.insert(name);
    return step_.attr(name);
  }

  /// Raises TypeError if a field of the class was not read, or if kForPython names one that the class does not have.
  void check() const;

 private:
  pybind11::handle step_;
  std::string kind_;
  std::set<std::string> read_;
};

}  // namespace headrace
