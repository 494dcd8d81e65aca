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

  /// Lets Python's garbage collector find and end cycles: functions often are methods of what holds this.
  static void let_collect(PyHeapTypeObject* heap_type) {
    PyTypeObject& type = heap_type->ht_type;
    type.tp_flags |= Py_TPFLAGS_HAVE_GC;
    type.tp_traverse = [](PyObject* object, visitproc visit, void* arg) {
      Py_VISIT(Py_TYPE(object));
      if (const Composed* const self = made(object)) {
        Py_VISIT(self->first_.ptr());
        Py_VISIT(self->then_.ptr());
      }
      return 0;
    };
    type.tp_clear = [](PyObject* object) {
      if (Composed* const self = made(object)) self->first_ = self->then_ = py::none();
      return 0;
    };
  }

 private:
  /// Null while the object is being made.
  static Composed* made(PyObject* object) {
    return static_cast<Composed*>(reinterpret_cast<py::detail::instance*>(object)->get_value_and_holder().value_ptr());
  }

  py::object first_, then_;
};

}  // namespace

void bind_composed(py::module_& m) {
  py::class_<Composed>(m, "Composed", "Calls `then` with the result of `first`. Tracebacks show only these two.",
                       py::custom_type_setup(&Composed::let_collect))
      .def(py::init<py::function, py::function>(), py::arg("first"), py::arg("then"))
      .def("__call__", &Composed::operator(), py::arg("value"))
      .def(py::pickle([](const Composed& made) { return made.parts(); },
                      [](const py::tuple& parts) {
                        return Composed(parts[0].cast<py::function>(), parts[1].cast<py::function>());
                      }));
}

}  // namespace headrace
