// Binds the memory that loaders keep between epochs.
#include <pybind11/pybind11.h>

#include "bind/convert.h"
#include "core/pipeline/batch/slot_memory.h"

namespace headrace {

void bind_memory(pybind11::module_& module) {
  namespace py = pybind11;
  py::class_<SlotKeeper>(module, "SlotKeeper",
                         "While one lives, slots of epochs that have ended are kept for the next ones.")
      .def(py::init<>());
  module.def("left_slot_bytes", &left_slot_bytes, "Bytes of the slots that are kept in this process.");
}

}  // namespace headrace
