// Binds the mixing of finished batches, in place, for headrace._loading.mixup.
#include <algorithm>
#include <array>
#include <string>

#include "bind/convert.h"
#include "bind/unlocked.h"
#include "core/kernels/mixup/mixing.h"
#include "core/kernels/resize/kernels.h"

namespace py = pybind11;

namespace headrace {
namespace {

MixType to_mix_type(const std::string& name) {
  constexpr std::array<const char*, kMixTypes> kNames{"float16", "bfloat16", "float32", "float64"};
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) throw py::value_error("type: float16, bfloat16, float32 or float64, not " + name);
  return static_cast<MixType>(found - kNames.begin());
}

// Whether each step along `axis` passes over `extent` bytes at least. An axis of length 1 has no stride.
bool apart(const py::array& array, int axis, py::ssize_t extent) {
  return array.shape(axis) < 2 || array.strides(axis) >= extent;
}

// `batch`: (n, m), the elements of each sample without gaps, of `type` or as raw bytes.
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

}  // namespace

void bind_mixing(py::module_& module) {
  module.def("mix", &mix, py::arg("batch").noconvert(), py::arg("type"), py::arg("share"), py::arg("rest"),
             py::kw_only(), py::arg("mirrored"), py::arg("isa") = "",
             "Mixes each sample with the one before it or, mirrored, with the one at its place from the end.");
  module.def("move_boxes", &move_boxes, py::arg("boxes").noconvert(), py::kw_only(), py::arg("mirrored"),
             "Gives each sample the box of the one before it or, mirrored, of the one at its place from the end.");
}

}  // namespace headrace
