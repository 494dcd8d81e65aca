// Binds the random numbers of samples.
#include <span>

#include "bind/convert.h"
#include "core/base/draws/philox.h"

namespace py = pybind11;

namespace headrace {
namespace {

using Integers = py::array_t<int64_t, py::array::c_style>;

std::span<const int64_t> span_of(const Integers& values) {
  if (values.ndim() != 1) throw py::value_error("indices, occurrences: int64 (n,)");
  return {values.data(), static_cast<size_t>(values.shape(0))};
}

// Uniforms, float64 (n, k). Keeps the GIL: a batch takes microseconds.
py::array_t<double> uniforms(uint64_t seed, uint64_t epoch, const Integers& indices, const Integers& occurrences,
                             py::ssize_t k) {
  const auto which = span_of(indices), times = span_of(occurrences);
  if (which.size() != times.size() || k < 0)
    throw py::value_error("indices and occurrences: of equal length; k: 0 or more");
  py::array_t<double> made({static_cast<py::ssize_t>(which.size()), k});
  const std::span<double> to(made.mutable_data(), which.size() * static_cast<size_t>(k));
  uniforms_of_samples(seed, epoch, which, times, to);
  return made;
}

}  // namespace

void bind_draws(py::module_& module) {
  module.def("uniforms", &uniforms, py::arg("seed"), py::arg("epoch"), py::arg("indices"), py::arg("occurrences"),
             py::arg("k"), "Uniforms of samples, float64 (n, k), as numpy's Philox draws them.");
}

}  // namespace headrace
