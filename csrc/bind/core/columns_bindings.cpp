// Binds the gathering of rows: tables of arrays, their pipeline, and a batch's columns as tensors.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/core/pipeline_objects.h"
#include "bind/core/process_recorder.h"
#include "bind/core/slot_tensor.h"
#include "core/io/source/columns.h"
#include "core/pipeline/columns/gather_backend.h"

namespace py = pybind11;

namespace headrace {
namespace {

// Arrays of one length, with any strides. Their memory is not copied.
PyBlobTable table_of_columns(const py::list& arrays) {
  std::vector<Column> columns;
  py::list owner;
  py::ssize_t count = -1;
  for (const py::handle one : arrays) {
    const auto array = py::cast<py::array>(one);
    if (array.ndim() < 1) throw py::value_error("a column has at least one axis");
    if (count >= 0 && array.shape(0) != count) throw py::value_error("the columns differ in length");
    count = array.shape(0);
    std::vector<Column::Axis> axes;
    for (py::ssize_t axis = 1; axis < array.ndim(); ++axis) axes.push_back({array.shape(axis), array.strides(axis)});
    columns.push_back(Column::of(static_cast<const uint8_t*>(array.data()), array.strides(0), axes,
                                 static_cast<size_t>(array.itemsize())));
    owner.append(array);
  }
  if (count < 0) throw py::value_error("there is no column");
  return {std::make_shared<Columns>(std::move(columns), count), owner};
}

std::unique_ptr<PyPipeline> gather_pipeline(std::vector<size_t> row_bytes, int threads, int slots_kept) {
  PipelineOptions options;
  options.backend = std::make_shared<GatherBackend>(std::move(row_bytes), static_cast<size_t>(slots_kept));
  options.recorder = process_recorder();
  options.threads = threads;
  return std::make_unique<PyPipeline>(std::move(options));
}

// (first byte of each column, size of the batch), in a batch of `samples`.
std::pair<std::vector<size_t>, size_t> gathered_bytes(std::vector<size_t> row_bytes, size_t samples) {
  const GatherLayout layout(std::move(row_bytes));
  std::vector<size_t> offsets;
  size_t offset = 0;
  for (size_t c = 0; c < layout.columns(); ++c) {
    offsets.push_back(offset);
    offset += layout.column_bytes(c, samples);
  }
  return {std::move(offsets), offset};
}

// The bytes of each column, as uint8 tensors over the batch's slot; only once per batch. Each is a storage of its own,
// so that torch.save of a column does not save the others; they share the lease.
py::list gathered(const HeldBatch& held, std::vector<size_t> row_bytes) {
  Batch& batch = *held.batch;
  const Lease slot = batch.slot.take();
  if (slot == nullptr) throw std::logic_error("this batch has no slot, or it was handed out before");
  const auto samples = static_cast<size_t>(batch.size());
  const GatherLayout layout(std::move(row_bytes));
  py::list columns;
  uint8_t* data = batch.memory;
  for (size_t c = 0; c < layout.columns(); ++c) {
    const auto size = static_cast<int64_t>(layout.row_bytes(c) * samples);
    columns.append(slot_tensor<1>(slot, data, {dlpack::kUInt, 8, 1}, {size}, {1}));
    data += layout.column_bytes(c, samples);
  }
  return columns;
}

}  // namespace

void bind_columns(py::module_& module) {
  module.def("table_of_columns", &table_of_columns, py::arg("arrays"));
  module.def("gather_pipeline", &gather_pipeline, py::arg("row_bytes"), py::kw_only(), py::arg("threads"),
             py::arg("slots_kept"));
  module.def("gathered_bytes", &gathered_bytes, py::arg("row_bytes"), py::arg("samples"));
  module.def("gathered", &gathered, py::arg("batch"), py::arg("row_bytes"));
}

}  // namespace headrace
