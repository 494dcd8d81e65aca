// Binds the cache of bytes of local files, and the tables that read through it.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/core/pipeline_objects.h"
#include "core/io/cache/cached_tables.h"
#include "core/io/cache/local_cache.h"

namespace py = pybind11;

namespace headrace {
namespace {

using Cache = std::shared_ptr<LocalCache>;

py::dict counts(const LocalCache& cache) {
  const StoreCounts now = cache.counts();
  py::dict made;
  made["from_memory"] = now.from_memory;
  made["from_disk"] = now.from_disk;
  made["read"] = now.fetched;
  made["bytes"] = now.bytes;
  return made;
}

PyBlobTable files(const Cache& cache, const py::bytes& paths, const Vector<uint64_t>& offsets) {
  return {std::make_shared<CachedFiles>(cache, std::string(paths), to_vector<uint64_t>(offsets)), py::none()};
}

// `table`: from table_of_ranges.
PyBlobTable ranges(const Cache& cache, const PyBlobTable& table) {
  auto inner = std::dynamic_pointer_cast<const FileRanges>(table.table);
  if (inner == nullptr) throw py::type_error("a table of ranges of files is needed");
  return {std::make_shared<CachedRanges>(cache, std::move(inner)), table.owner};
}

}  // namespace

void bind_caching(py::module_& module) {
  py::class_<LocalCache, Cache>(module, "LocalCache")
      .def(py::init<size_t, std::string>(), py::arg("memory"), py::arg("folder"))
      .def("files", &files, py::arg("paths"), py::arg("offsets"))
      .def("ranges", &ranges, py::arg("table"))
      .def("counts", &counts)
      .def("take_written", &LocalCache::take_written)
      .def("write_error", &LocalCache::write_error);
}

}  // namespace headrace
