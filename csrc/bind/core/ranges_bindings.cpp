// Binds the table of byte ranges of files.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/core/pipeline_objects.h"
#include "core/source/file_ranges.h"

namespace py = pybind11;

namespace headrace {
namespace {

// `stamps`: (size, time of modification in ns) of each file, int64 (n, 2). The other arrays are not copied.
PyBlobTable table_of_ranges(const py::bytes& paths, const Vector<uint64_t>& path_offsets, const Vector<int64_t>& stamps,
                            const Vector<uint32_t>& file_of, const Vector<uint64_t>& offsets,
                            const Vector<uint64_t>& lengths) {
  if (stamps.ndim() != 2 || stamps.shape(1) != 2) throw py::value_error("a file's stamp is its size and its time");
  std::vector<FileStamp> list;
  for (py::ssize_t i = 0; i < stamps.shape(0); ++i) {
    list.push_back({static_cast<uint64_t>(stamps.at(i, 0)), stamps.at(i, 1)});
  }
  auto table = std::make_shared<FileRanges>(std::string(paths), to_vector<uint64_t>(path_offsets), std::move(list),
                                            span_of(file_of), span_of(offsets), span_of(lengths));
  return {std::move(table), py::make_tuple(file_of, offsets, lengths)};
}

}  // namespace

void bind_ranges(py::module_& module) {
  module.def("table_of_ranges", &table_of_ranges, py::arg("paths"), py::arg("path_offsets"), py::arg("stamps"),
             py::arg("file_of").noconvert(), py::arg("offsets").noconvert(), py::arg("lengths").noconvert());
}

}  // namespace headrace
