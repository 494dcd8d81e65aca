// Binds the lossless rewriting of JPEGs.
#include <cstdint>
#include <span>
#include <vector>

#include "bind/convert.h"
#include "bind/unlocked.h"
#include "core/jpeg/transcode/pack_jpeg.h"

namespace py = pybind11;

namespace headrace {
namespace {

py::bytes packed_jpeg(const py::bytes& data, bool keep_metadata) {
  const std::span<const uint8_t> bytes = span_of(data);
  std::vector<uint8_t> packed;
  {
    const Unlocked unlocked;
    packed = pack_jpeg(bytes, keep_metadata);
  }
  return {reinterpret_cast<const char*>(packed.data()), packed.size()};
}

}  // namespace

void bind_packing(py::module_& module) {
  module.def("pack_jpeg", &packed_jpeg, py::arg("data"), py::arg("keep_metadata") = true,
             "A baseline JPEG with the same coefficients, with optimal Huffman codes and a restart marker a row of\n"
             "MCUs. Raises NeedsPillow with the reason why a file stays as it is.");
}

}  // namespace headrace
