// Binds the mixing of batches for headrace.mixing: in place, and of bytes into new ones.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bind/convert.h"
#include "bind/unlocked.h"
#include "core/byte_mixing/byte_mixing.h"
#include "core/kernels/kernels.h"
#include "core/mixing/mixing.h"

namespace py = pybind11;

namespace headrace {
namespace {

MixType to_mix_type(const std::string& name) {
  constexpr std::array<const char*, kMixTypes> kNames{"float16", "bfloat16", "float32", "float64"};
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) throw py::value_error("type: float16, bfloat16, float32 or float64, not " + name);
  return static_cast<MixType>(found - kNames.begin());
}

// Whether each step along `axis` passes over `extent` bytes at least. A single place has no stride.
bool apart(const py::array& array, int axis, py::ssize_t extent) {
  return array.shape(axis) < 2 || array.strides(axis) >= extent;
}

// `batch`: (n, m), the elements of each sample without gaps; those of `type`, or as many bytes.
void mix(py::array batch, const std::string& type, double share, double rest, bool mirrored, const std::string& isa) {
  const MixType mixed = to_mix_type(type);
  const auto bytes = static_cast<py::ssize_t>(mix_bytes(mixed));
  if (batch.ndim() != 2 || batch.itemsize() != bytes || !apart(batch, 1, bytes) ||
      (batch.shape(1) > 1 && batch.strides(1) != bytes) || !apart(batch, 0, batch.shape(1) * bytes)) {
    throw py::value_error("batch: (n, m) elements of the type, samples without gaps and apart from one another");
  }
  const Kernels* named = named_kernels(isa);
  const MixLoops& loops = *(named != nullptr ? *named : kernels()).mixing;
  const MixBatch all{.data = static_cast<uint8_t*>(batch.mutable_data()),
                     .samples = static_cast<size_t>(batch.shape(0)),
                     .stride = static_cast<size_t>(batch.strides(0)),
                     .elements = static_cast<size_t>(batch.shape(1)),
                     .type = mixed};
  const Unlocked unlocked;
  (mirrored ? mix_mirrored : mix_rolled)(all, {share, rest}, loops);
}

// `boxes`: (n, planes, rows, columns) elements of any type, rows without gaps.
void move_boxes(py::array boxes, bool mirrored) {
  const py::ssize_t bytes = boxes.ndim() == 4 ? boxes.shape(3) * boxes.itemsize() : 0;
  if (boxes.ndim() != 4 || (boxes.shape(3) > 1 && boxes.strides(3) != boxes.itemsize()) || !apart(boxes, 2, bytes) ||
      !apart(boxes, 1, bytes) || !apart(boxes, 0, bytes)) {
    throw py::value_error("boxes: (n, planes, rows, columns), rows without gaps and apart from one another");
  }
  const MixBoxes all{.data = static_cast<uint8_t*>(boxes.mutable_data()),
                     .samples = static_cast<size_t>(boxes.shape(0)),
                     .planes = static_cast<size_t>(boxes.shape(1)),
                     .rows = static_cast<size_t>(boxes.shape(2)),
                     .bytes = static_cast<size_t>(bytes),
                     .sample_stride = boxes.strides(0),
                     .plane_stride = boxes.strides(1),
                     .row_stride = boxes.strides(2)};
  const Unlocked unlocked;
  (mirrored ? mirror_boxes : roll_boxes)(all);
}

using Bytes = py::array_t<uint8_t, py::array::c_style>;
using Floats = py::array_t<float, py::array::c_style>;

/// A table of normalised float32, [3][256].
class PyByteTable {
 public:
  PyByteTable(std::vector<float> entries, const Normalisation& by) : entries_(std::move(entries)), by_(by) {}

  void mix(const Bytes& bytes, Floats out, float share, float rest, const std::string& isa) const {
    const ByteBatch batch = to_batch(bytes, out);
    const ByteLoops& loops = loops_of(isa);
    const Unlocked unlocked;
    mix_bytes(batch, {entries_.data(), by_}, share, rest, loops);
  }

  void cut(const Bytes& bytes, Floats out, const std::array<size_t, 4>& box, const std::string& isa) const {
    const ByteBatch batch = to_batch(bytes, out);
    const auto [left, top, right, bottom] = box;
    if (right > batch.width || bottom > batch.height) throw py::value_error("box: within the images");
    const ByteLoops& loops = loops_of(isa);
    const Unlocked unlocked;
    cut_bytes(batch, {entries_.data(), by_}, {left, top, right, bottom}, loops);
  }

 private:
  static const ByteLoops& loops_of(const std::string& isa) {
    const Kernels* named = named_kernels(isa);
    return byte_loops((named != nullptr ? *named : kernels()).name);
  }

  static ByteBatch to_batch(const Bytes& bytes, Floats& out) {
    const bool fits = bytes.ndim() == 4 && out.ndim() == 4 && bytes.shape(1) == 3 &&
                      std::equal(bytes.shape(), bytes.shape() + 4, out.shape());
    if (!fits) throw py::value_error("bytes and out: both (n, 3, height, width)");
    return {.bytes = bytes.data(),
            .to = out.mutable_data(),
            .samples = static_cast<size_t>(bytes.shape(0)),
            .height = static_cast<size_t>(bytes.shape(2)),
            .width = static_cast<size_t>(bytes.shape(3))};
  }

  std::vector<float> entries_;
  Normalisation by_;
};

std::unique_ptr<PyByteTable> byte_table(const Floats& entries) {
  if (entries.ndim() != 2 || entries.shape(0) != 3 || entries.shape(1) != 256) return nullptr;
  const std::optional<Normalisation> found = find_normalisation(entries.data());
  if (!found) return nullptr;
  return std::make_unique<PyByteTable>(std::vector<float>(entries.data(), entries.data() + entries.size()), *found);
}

}  // namespace

void bind_mixing(py::module_& module) {
  module.def("mix", &mix, py::arg("batch").noconvert(), py::arg("type"), py::arg("share"), py::arg("rest"),
             py::kw_only(), py::arg("mirrored"), py::arg("isa") = "",
             "Mixes each sample with the one before it or, mirrored, with the one at its place from the end.");
  module.def("move_boxes", &move_boxes, py::arg("boxes").noconvert(), py::kw_only(), py::arg("mirrored"),
             "Gives each sample the box of the one before it or, mirrored, of the one at its place from the end.");
  py::class_<PyByteTable>(module, "ByteTable", "A table of bytes' elements whose arithmetic is known.")
      .def_static("of", &byte_table, py::arg("entries"),
                  "The table of entries (3, 256); None if they are no normalisation.")
      .def("mix", &PyByteTable::mix, py::arg("bytes").noconvert(), py::arg("out").noconvert(), py::arg("share"),
           py::arg("rest"), py::arg("isa") = "",
           "Writes each sample's elements times `share`, plus those of the one before it times `rest`.")
      .def("cut", &PyByteTable::cut, py::arg("bytes").noconvert(), py::arg("out").noconvert(), py::arg("box"),
           py::arg("isa") = "", "Writes each sample's elements, and within the box those of the one before it.");
}

}  // namespace headrace
