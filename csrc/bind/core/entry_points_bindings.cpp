// Binds the table of entry points, and its content as arrays, for a sidecar.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "bind/convert.h"
#include "bind/unlocked.h"
#include "core/jpeg/scan/entry_points.h"

namespace py = pybind11;

namespace headrace {
namespace {

using Secrets = Vector<uint64_t>;

EntryPoints::Secrets to_secrets(const Secrets& given) {
  EntryPoints::Secrets kept{};
  if (given.size() != static_cast<py::ssize_t>(kept.size())) throw py::value_error("five secrets are needed");
  std::copy_n(given.data(), kept.size(), kept.begin());
  return kept;
}

std::shared_ptr<EntryPoints> make(size_t limit, const std::optional<Secrets>& secrets) {
  return secrets ? std::make_shared<EntryPoints>(limit, to_secrets(*secrets)) : std::make_shared<EntryPoints>(limit);
}

std::shared_ptr<EntryPoints> attach(int descriptor, size_t capacity, const Secrets& secrets) {
  return EntryPoints::attach(descriptor, capacity, to_secrets(secrets));
}

py::dict counts(const EntryPoints& self) {
  const EntryCounts now = self.counts();
  using namespace py::literals;
  return py::dict("images"_a = now.images, "bytes"_a = now.bytes, "decodes"_a = now.decodes, "entered"_a = now.entered);
}

// (keys, counts, bits, dc): per image its key and the number of its rows; per row the bit and the DC values.
py::tuple content(const EntryPoints& self) {
  std::vector<EntryList> lists;
  size_t rows = 0;
  {
    const Unlocked unlocked;
    lists = self.all();
    for (const EntryList& one : lists) rows += one.points.size();
  }
  const auto images = static_cast<py::ssize_t>(lists.size()), points = static_cast<py::ssize_t>(rows);
  Vector<uint64_t> keys(images);
  Vector<uint32_t> counts(images), bits(points);
  Vector<int16_t> dc({points, py::ssize_t{3}});
  uint64_t* key = keys.mutable_data();
  uint32_t *count = counts.mutable_data(), *bit = bits.mutable_data();
  int16_t* value = dc.mutable_data();
  {
    const Unlocked unlocked;
    for (const EntryList& one : lists) {
      *key++ = one.key;
      *count++ = static_cast<uint32_t>(one.points.size());
      for (const EntryPoint& point : one.points) {
        *bit++ = point.bit;
        value = std::copy(point.dc.begin(), point.dc.end(), value);
      }
    }
    lists = {};
  }
  return py::make_tuple(keys, counts, bits, dc);
}

// Adds what content() returned, up to the limit.
void add(EntryPoints& self, const Vector<uint64_t>& keys, const Vector<uint32_t>& counts, const Vector<uint32_t>& bits,
         const Vector<int16_t>& dc) {
  size_t rows = 0;
  for (py::ssize_t i = 0; i < counts.size(); ++i) rows += counts.data()[i];
  if (keys.size() != counts.size() || rows != static_cast<size_t>(bits.size()) ||
      3 * rows != static_cast<size_t>(dc.size())) {
    throw py::value_error("the arrays do not fit each other");
  }
  const uint64_t* key = keys.data();
  const uint32_t *count = counts.data(), *bit = bits.data();
  const int16_t* value = dc.data();
  const auto images = static_cast<size_t>(keys.size());
  const Unlocked unlocked;
  std::vector<EntryPoint> points;
  for (size_t i = 0; i < images; ++i) {
    points.clear();
    for (uint32_t row = 0; row < count[i]; ++row, ++bit, value += 3)
      points.push_back({*bit, {value[0], value[1], value[2]}});
    self.keep(key[i], points);
  }
}

}  // namespace

void bind_entry_points(py::module_& module) {
  py::class_<EntryPoints, std::shared_ptr<EntryPoints>>(module, "EntryPoints")
      .def(py::init(&make), py::arg("limit"), py::arg("secrets") = py::none())
      .def_static("attach", &attach, py::arg("descriptor"), py::arg("capacity"), py::arg("secrets"),
                  "The table of another process, by a descriptor of its memory, which stays open; None where the\n"
                  "descriptor leads to something else.")
      .def_property_readonly("limit", &EntryPoints::limit)
      .def_property_readonly("capacity", &EntryPoints::capacity, "Of the memory, for attach().")
      .def_property_readonly("descriptor", &EntryPoints::descriptor, "Of the memory; -1 where only a fork shares it.")
      .def_property_readonly("secrets",
                             [](const EntryPoints& self) {
                               const EntryPoints::Secrets& held = self.secrets();
                               return Secrets(static_cast<py::ssize_t>(held.size()), held.data());
                             })
      .def("counts", &counts)
      .def("content", &content)
      .def("add", &add, py::arg("keys"), py::arg("counts"), py::arg("bits"), py::arg("dc"));
}

}  // namespace headrace
