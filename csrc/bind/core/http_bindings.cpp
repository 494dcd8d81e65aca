// Binds the reader of plain HTTP ranges.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/range_key_conversion.h"
#include "bind/unlocked.h"
#include "core/io/http/http_reader.h"
#include "core/io/http/range_request.h"

namespace py = pybind11;

namespace headrace {
namespace {

void add_object(HttpReader& self, uint64_t number, uint32_t host, const py::bytes& head, uint64_t size,
                const std::string& tag, uint32_t lead, bool tar, int64_t expires_ns) {
  self.queue().add_object(number, {host, head, size, tag, lead, tar, expires_ns});
}

std::vector<size_t> fetch(HttpReader& self, const Vector<uint64_t>& objects, const Vector<uint64_t>& offsets,
                          const Vector<uint64_t>& lengths, const Vector<uint64_t>& marks, bool urgent) {
  const std::vector<RangeKey> keys = to_range_keys(objects, offsets, lengths, marks);
  const Unlocked unlocked;
  return self.queue().fetch(keys, urgent);
}

// Per request: its ranges, why ("refused", "failed", "late", "odd"), urgent, status, Retry-After, reason.
std::vector<py::tuple> returned(HttpReader& self) {
  static constexpr const char* kNames[] = {"refused", "failed", "late", "odd"};
  std::vector<py::tuple> made;
  for (const ReturnedRanges& one : self.queue().returned()) {
    py::list parts;
    for (const RangeKey& key : one.parts) parts.append(py::make_tuple(key.object, key.offset, key.length, key.mark));
    made.push_back(py::make_tuple(parts, kNames[static_cast<size_t>(one.why)], one.urgent, one.status,
                                  py::bytes(one.retry_after), one.reason));
  }
  return made;
}

py::dict counts(HttpReader& self) {
  const RequestQueue::Counts now = self.queue().counts();
  py::dict made;
  made["requests"] = now.requests;
  made["late"] = now.late;
  made["bytes"] = now.bytes;
  return made;
}

std::vector<std::vector<size_t>> joined(const Vector<uint64_t>& objects, const Vector<uint64_t>& offsets,
                                        const Vector<uint64_t>& lengths) {
  return joined_ranges(to_range_keys(objects, offsets, lengths));
}

}  // namespace

void bind_http(py::module_& module) {
  py::class_<HttpReader, std::shared_ptr<HttpReader>>(module, "HttpReader")
      .def(py::init([](std::shared_ptr<ByteStore> store, size_t requests, double timeout_s, double hedge) {
             return std::make_shared<HttpReader>(std::move(store), HttpReader::Limits{requests, timeout_s, hedge});
           }),
           py::arg("store"), py::arg("requests"), py::arg("timeout_s"), py::arg("hedge"))
      .def("add_host", [](HttpReader& self) { return self.queue().add_host(); })
      .def("add_object", &add_object, py::arg("number"), py::arg("host"), py::arg("head"), py::arg("size"),
           py::arg("tag"), py::arg("lead") = 0, py::arg("tar") = false, py::arg("expires_ns") = 0)
      .def("drop_object", [](HttpReader& self, uint64_t number) { self.queue().drop_object(number); })
      .def("fetch", &fetch, py::arg("objects").noconvert(), py::arg("offsets").noconvert(),
           py::arg("lengths").noconvert(), py::arg("marks").noconvert(), py::arg("urgent") = false)
      .def("add_connection",
           [](HttpReader& self, uint32_t host, int descriptor) { self.queue().add_connection(host, descriptor); })
      .def("lack_connections", [](HttpReader& self, uint32_t host, size_t count,
                                  const std::string& reason) { self.queue().lack_connections(host, count, reason); })
      .def("pause", [](HttpReader& self, uint32_t host, double seconds) { self.queue().pause(host, seconds); })
      .def_property_readonly("event_descriptor", [](HttpReader& self) { return self.queue().event_descriptor(); })
      .def("returned", &returned)
      .def("needed", [](HttpReader& self) { return self.queue().needed(); })
      .def("counts", &counts)
      .def("close", [](HttpReader& self) {
        const Unlocked unlocked;
        self.close();
      });
  module.def("joined_ranges", &joined, py::arg("objects").noconvert(), py::arg("offsets").noconvert(),
             py::arg("lengths").noconvert());
}

}  // namespace headrace
