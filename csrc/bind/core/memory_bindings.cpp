// Binds the memory that loaders keep between epochs, and arrays over memory that Python code lends.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <vector>

#include "bind/convert.h"
#include "core/pipeline/batch/slot_memory.h"

namespace headrace {
namespace {

namespace py = pybind11;

py::array array_over(uintptr_t address, const std::vector<py::ssize_t>& shape, const py::dtype& dtype,
                     const py::object& owner) {
  if (dtype.kind() == 'O') throw py::type_error("array_over: arrays of numbers, not of objects");
  return {dtype, shape, {}, reinterpret_cast<const void*>(address), owner};
}

}  // namespace

void bind_memory(py::module_& module) {
  module.def(
      "array_over", &array_over, py::arg("address"), py::arg("shape"), py::arg("dtype"), py::arg("owner"),
      "A contiguous array over memory at an address; it refers to the memory's owner until the array and all its\n"
      "views are gone. As NumPy's __array_interface__, which takes several times as long.");
  py::class_<SlotKeeper>(module, "SlotKeeper",
                         "While one lives, slots of epochs that have ended are kept for the next ones.")
      .def(py::init<>());
  module.def("left_slot_bytes", &left_slot_bytes, "Bytes of the slots that are kept in this process.");
}

}  // namespace headrace
