// Binds a composition of two Python callables that leaves no frame of its own in tracebacks.
#include <pybind11/pybind11.h>

#include <utility>

#include "bind/convert.h"

namespace py = pybind11;

namespace headrace {
namespace {

class Composed {
 public:
  Composed(py::function first, py::function then) : first_(std::move(first)), then_(std::move(then)) {}
  py::object operator()(const py::object& value) const { return then_(first_(value)); }
  py::tuple parts() const { return py::make_tuple(first_, then_); }

 private:
  py::function first_, then_;
};

}  // namespace

void bind_composed(py::module_& m) {
  py::class_<Composed>(m, "Composed", "Calls `then` with the result of `first`. Tracebacks show only these two.")
      .def(py::init<py::function, py::function>(), py::arg("first"), py::arg("then"))
      .def("__call__", &Composed::operator(), py::arg("value"))
      .def(py::pickle([](const Composed& made) { return made.parts(); },
                      [](const py::tuple& parts) {
                        return Composed(parts[0].cast<py::function>(), parts[1].cast<py::function>());
                      }));
}

}  // namespace headrace
