// Binds the index of a tar archive, and the reader of an archive whose bytes are still arriving.
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/shared_bytes.h"
#include "bind/unlocked.h"
#include "core/base/error.h"
#include "core/io/tar/arriving_tar.h"
#include "core/io/tar/file_source.h"
#include "core/io/tar/tar_samples.h"

namespace py = pybind11;

namespace headrace {
namespace {

template <class T>
py::array_t<T> array_of(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

[[noreturn]] void raise(const ArchiveError& error) {
  // Names in the message may not be UTF-8.
  const auto text = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(error.what(), static_cast<Py_ssize_t>(std::strlen(error.what())), "backslashreplace"));
  PyErr_SetObject(PyExc_ValueError, text.ptr());
  throw py::error_already_set();
}

// The fields of TarSamples, and "stamp": size and time of modification.
py::dict index_of(const py::bytes& path) {
  const std::string name(path);
  TarSamples made;
  FileStamp stamp;
  try {
    const Unlocked unlocked;
    const FileSource source(name.c_str());
    stamp = source.stamp();
    made = tar_samples(source);
  } catch (const ArchiveError& error) {
    raise(error);
  } catch (const Error& error) {
    errno = error.os_errno();
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, name.c_str());
    throw py::error_already_set();
  }
  py::list extensions;
  for (const std::string& one : made.extensions) extensions.append(py::bytes(one));
  py::dict fields;
  fields["stamp"] = py::make_tuple(stamp.size, stamp.modified_ns);
  fields["sample"] = array_of(made.sample);
  fields["extension"] = array_of(made.extension);
  fields["offset"] = array_of(made.offset);
  fields["length"] = array_of(made.length);
  fields["number"] = array_of(made.number);
  fields["keys"] = py::bytes(made.keys);
  fields["key_offsets"] = array_of(made.key_offsets);
  fields["extensions"] = extensions;
  fields["has_end"] = made.has_end;
  fields["passed"] = made.passed;
  return fields;
}

std::unique_ptr<ArrivingTar> arriving(uint64_t size, uint64_t begin, const std::vector<py::bytes>& wanted) {
  std::unordered_set<std::string> names;
  for (const py::bytes& one : wanted) names.emplace(one);
  return std::make_unique<ArrivingTar>(size, begin, std::move(names));
}

void append(ArrivingTar& self, const py::object& data) { self.append(shared_bytes(data)); }

// (key, extension, begin, offset, bytes, or None for what is not wanted); None: more bytes have to arrive; (): the end.
py::object next_member(ArrivingTar& self) {
  ArrivedMember member;
  ArrivingTar::Step step{};
  try {
    step = self.next(member);
  } catch (const ArchiveError& error) {
    raise(error);
  }
  if (step == ArrivingTar::Step::kMore) return py::none();
  if (step == ArrivingTar::Step::kEnd) return py::tuple();
  py::object data = py::none();
  if (member.wanted) data = py::cast(PySharedBytes{copy_of(member.bytes)});
  return py::make_tuple(py::bytes(member.key), py::bytes(member.extension), member.begin, member.offset, data);
}

py::tuple split_name(const py::bytes& name) {
  const std::string text(name);
  const TarName parts = split_tar_name(text);
  return py::make_tuple(py::bytes(std::string(parts.key)), py::bytes(std::string(parts.extension)));
}

}  // namespace

void bind_tar(py::module_& module) {
  module.attr("NO_NUMBER") = TarSamples::kNoNumber;
  module.def("tar_samples", &index_of, py::arg("path"));
  py::class_<ArrivingTar>(module, "ArrivingTar")
      .def(py::init(&arriving), py::arg("size"), py::arg("begin"), py::arg("wanted"))
      .def("append", &append, py::arg("data"))
      .def("next", &next_member)
      .def_property_readonly("position", &ArrivingTar::position)
      .def_property_readonly("has_end", &ArrivingTar::has_end)
      .def_property_readonly("passed", &ArrivingTar::passed);
  module.def("split_tar_name", &split_name, py::arg("name"));
}

}  // namespace headrace
