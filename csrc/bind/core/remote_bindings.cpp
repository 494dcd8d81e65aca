// Binds the store of fetched bytes, the table of ranges of objects on other machines, and entries of a cache on disk.
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/core/pipeline_objects.h"
#include "bind/range_key_conversion.h"
#include "bind/shared_bytes.h"
#include "bind/unlocked.h"
#include "core/base/error.h"
#include "core/io/remote/byte_store.h"
#include "core/io/remote/cache_file.h"
#include "core/io/remote/chosen_ranges.h"
#include "core/io/remote/remote_ranges.h"

namespace py = pybind11;

namespace headrace {
namespace {

using Store = std::shared_ptr<ByteStore>;

py::bytes to_bytes(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void put(ByteStore& store, uint64_t object, uint64_t offset, uint64_t length, uint64_t mark, const py::buffer& data,
         bool from_disk) {
  const py::buffer_info info = bytes_of(data);
  const Unlocked unlocked;
  store.put({object, offset, length, mark}, span_of(info),
            from_disk ? ByteStore::Origin::kDisk : ByteStore::Origin::kFetched);
}

void put_shared(ByteStore& store, uint64_t object, uint64_t offset, uint64_t length, uint64_t mark,
                const PySharedBytes& data) {
  store.put({object, offset, length, mark}, data.bytes);
}

[[noreturn]] void raise_os_error(const Error& error) {
  const int code = error.os_errno() != 0 ? error.os_errno() : EIO;
  PyErr_SetObject(PyExc_OSError, py::make_tuple(code, error.what()).ptr());  // of the subclass of its code
  throw py::error_already_set();
}

// None: see ByteStore::take_out.
std::optional<PySharedBytes> take_out(ByteStore& store, uint64_t object, uint64_t offset, uint64_t length,
                                      uint64_t mark) {
  try {
    SharedBytes bytes = store.take_out({object, offset, length, mark});
    if (bytes == nullptr) return std::nullopt;
    return PySharedBytes{std::move(bytes)};
  } catch (const Error& error) {
    raise_os_error(error);
  }
}

std::vector<py::tuple> take_demands(ByteStore& store) {
  std::vector<py::tuple> made;
  for (const RangeKey& key : store.take_demands()) {
    made.push_back(py::make_tuple(key.object, key.offset, key.length, key.mark));
  }
  return made;
}

py::dict counts(const ByteStore& store) {
  const StoreCounts now = store.counts();
  py::dict made;
  made["from_memory"] = now.from_memory;
  made["from_disk"] = now.from_disk;
  made["fetched"] = now.fetched;
  made["bytes"] = now.bytes;
  return made;
}

/// A table, and the arrays whose memory it uses.
struct PyRemoteRanges {
  std::shared_ptr<const RemoteRanges> ranges;
  py::object owner;
};

// `cached`: for each object, the beginning of the paths of its entries on disk; b"": none.
PyRemoteRanges remote_ranges(const Store& store, const Vector<uint64_t>& objects, const std::vector<py::bytes>& cached,
                             const Vector<uint32_t>& object_of, const Vector<uint64_t>& offsets,
                             const Vector<uint64_t>& lengths, const std::optional<Vector<uint64_t>>& marks) {
  std::vector<std::string> paths;
  for (const py::bytes& one : cached) paths.emplace_back(one);
  auto made = std::make_shared<RemoteRanges>(store, to_vector<uint64_t>(objects), std::move(paths), span_of(object_of),
                                             span_of(offsets), span_of(lengths),
                                             marks ? span_of(*marks) : std::span<const uint64_t>());
  return {std::move(made), py::make_tuple(object_of, offsets, lengths, marks)};
}

Vector<int64_t> want(const PyRemoteRanges& self, const Vector<int64_t>& rows) {
  std::vector<int64_t> wanted;
  {
    const Unlocked unlocked;
    wanted = self.ranges->want(span_of(rows));
  }
  return Vector<int64_t>(static_cast<py::ssize_t>(wanted.size()), wanted.data());
}

// Raises OSError if the bytes cannot be had.
py::bytes take(const PyRemoteRanges& self, int64_t row) {
  ReadBuffer buffer;
  std::span<const uint8_t> bytes;
  if (row < 0 || row >= self.ranges->size()) throw py::index_error("a row is not in the table");
  try {
    const Unlocked unlocked;
    bytes = self.ranges->read(row, buffer, kNeverCancelled);
  } catch (const Error& error) {
    PyErr_SetString(PyExc_OSError, error.what());
    throw py::error_already_set();
  }
  return to_bytes(bytes);
}

// A table of only these rows, whose bytes the store holds or receives. It refers to no Python object, so a pipeline can
// drop it as soon as its batch is done.
PyBlobTable chosen_ranges(const Store& store, const Vector<int64_t>& rows, const Vector<uint64_t>& objects,
                          const Vector<uint64_t>& offsets, const Vector<uint64_t>& lengths) {
  const std::vector<RangeKey> keys = to_range_keys(objects, offsets, lengths);
  if (objects.size() != rows.size()) throw std::out_of_range("the arrays of the ranges differ in length");
  return {std::make_shared<ChosenRanges>(store, span_of(rows), keys), py::none()};
}

int write_entry(const std::string& path, const py::buffer& data) {
  const py::buffer_info info = bytes_of(data);
  const Unlocked unlocked;
  return write_cache_file(path, span_of(info));
}

py::object read_entry(const std::string& path, uint64_t length) {
  ReadBuffer buffer;
  std::optional<std::span<const uint8_t>> found;
  {
    const Unlocked unlocked;
    found = read_cache_file(path, length, buffer);
  }
  if (!found) return py::none();
  return to_bytes(*found);
}

}  // namespace

void bind_remote(py::module_& module) {
  module.attr("ANY_LENGTH") = kAnyLength;
  py::class_<PySharedBytes>(module, "SharedBytes", py::buffer_protocol())
      .def("__len__", [](const PySharedBytes& self) { return self.bytes->size(); })
      .def_buffer([](const PySharedBytes& self) {
        const auto size = static_cast<py::ssize_t>(self.bytes->size());
        return py::buffer_info(const_cast<uint8_t*>(self.bytes->data()), size, true);
      });
  py::class_<ByteStore, Store>(module, "ByteStore")
      .def(py::init<size_t, size_t>(), py::arg("window"), py::arg("keep"))
      .def(
          "want",
          [](ByteStore& self, uint64_t object, uint64_t offset, uint64_t length, uint64_t mark) {
            return self.want({object, offset, length, mark});
          },
          py::arg("object"), py::arg("offset"), py::arg("length"), py::arg("mark") = 0)
      .def("put", &put_shared, py::arg("object"), py::arg("offset"), py::arg("length"), py::arg("mark"),
           py::arg("data"))
      .def("put", &put, py::arg("object"), py::arg("offset"), py::arg("length"), py::arg("mark"), py::arg("data"),
           py::arg("from_disk") = false)
      .def("fail",
           [](ByteStore& self, uint64_t object, uint64_t offset, uint64_t length, uint64_t mark, std::string reason,
              int code) { self.fail({object, offset, length, mark}, std::move(reason), code); })
      .def("take_out", &take_out, py::arg("object"), py::arg("offset"), py::arg("length"), py::arg("mark") = 0)
      .def(
          "forget",
          [](ByteStore& self, uint64_t object, uint64_t offset, uint64_t length, uint64_t mark) {
            self.forget({object, offset, length, mark});
          },
          py::arg("object"), py::arg("offset"), py::arg("length"), py::arg("mark") = 0)
      .def("take_demands", &take_demands)
      .def_property_readonly("demand_descriptor", &ByteStore::demand_descriptor)
      .def("counts", &counts)
      .def("clear", &ByteStore::clear)
      .def("close", &ByteStore::close);
  py::class_<PyRemoteRanges>(module, "RemoteRanges")
      .def(py::init(&remote_ranges), py::arg("store"), py::arg("objects").noconvert(), py::arg("cached"),
           py::arg("object_of").noconvert(), py::arg("offsets").noconvert(), py::arg("lengths").noconvert(),
           py::arg("marks") = py::none())
      .def("table", [](const PyRemoteRanges& self) { return PyBlobTable{self.ranges, self.owner}; })
      .def("want", &want, py::arg("rows"))
      .def("has", [](const PyRemoteRanges& self, int64_t row) { return self.ranges->has(row); })
      .def("take", &take, py::arg("row"));
  module.def("chosen_ranges", &chosen_ranges, py::arg("store"), py::arg("rows").noconvert(),
             py::arg("objects").noconvert(), py::arg("offsets").noconvert(), py::arg("lengths").noconvert());
  module.def("write_cache_file", &write_entry, py::arg("path"), py::arg("data"));
  module.def("read_cache_file", &read_entry, py::arg("path"), py::arg("length"));
}

}  // namespace headrace
