// The module headrace._core: nothing but the list of its parts.
#include <pybind11/pybind11.h>

#include "convert.h"
#include "error.h"
#include "kernels.h"

PYBIND11_MODULE(_core, module) {
  namespace py = pybind11;
  module.doc() = "Native core of headrace: not a public interface; see headrace.DataLoader and headrace.ops.";
  py::register_exception<headrace::NeedsPillow>(module, "NeedsPillow", PyExc_ValueError);
  module.def(
      "instruction_set", [] { return headrace::kernels().name; }, "The kernels in use: scalar, avx2 or avx512.");
  headrace::bind_jpeg(module);
  headrace::bind_ops(module);
  headrace::bind_pipeline(module);
}
