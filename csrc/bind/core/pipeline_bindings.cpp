// Binds BlobTable, Pipeline, Batch and PythonJob: convert under the GIL, release it, call the core once.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "bind/backend_capsule.h"
#include "bind/convert.h"
#include "bind/core/pipeline_objects.h"
#include "bind/core/process_recorder.h"
#include "bind/core/slot_tensor.h"
#include "bind/plan.h"
#include "bind/unlocked.h"

namespace py = pybind11;
using namespace std::chrono_literals;

namespace headrace {
namespace {

using Int64s = py::array_t<int64_t, py::array::c_style | py::array::forcecast>;
using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;

PyBlobTable table_of_files(const py::bytes& paths, const py::array_t<uint64_t, py::array::c_style>& offsets) {
  return {BlobTable::of_files(std::string(paths), to_vector<uint64_t>(offsets)), py::none()};
}

PyBlobTable table_of_memory(const py::list& buffers) {
  std::vector<Blob> spans;
  py::list owner;
  for (const py::handle buffer : buffers) {
    const py::buffer_info info = bytes_of(py::reinterpret_borrow<py::buffer>(buffer));
    Blob blob;
    blob.data = static_cast<const uint8_t*>(info.ptr);
    blob.size = static_cast<uint64_t>(info.size * info.itemsize);
    spans.push_back(blob);
    owner.append(py::memoryview(py::reinterpret_borrow<py::object>(buffer)));  // an exported buffer cannot be resized
  }
  return {BlobTable::of_memory(std::move(spans)), owner};
}

// Row i: sizes[i] bytes of buffers[which[i]], starting at begins[i].
PyBlobTable table_of_spans(const py::list& buffers, const Int64s& which, const Int64s& begins, const Int64s& sizes) {
  std::vector<std::span<const uint8_t>> memory, rows;
  py::list owner;
  for (const py::handle buffer : buffers) {
    const py::buffer_info info = bytes_of(py::reinterpret_borrow<py::buffer>(buffer));
    memory.emplace_back(static_cast<const uint8_t*>(info.ptr), static_cast<size_t>(info.size * info.itemsize));
    owner.append(py::memoryview(py::reinterpret_borrow<py::object>(buffer)));
  }
  if (begins.size() != which.size() || sizes.size() != which.size()) throw py::value_error("one of each for each row");
  rows.reserve(static_cast<size_t>(which.size()));
  for (py::ssize_t i = 0; i < which.size(); ++i) {
    const auto number = static_cast<size_t>(which.data()[i]);  // a negative one becomes too large
    const auto begin = static_cast<size_t>(begins.data()[i]), size = static_cast<size_t>(sizes.data()[i]);
    if (number >= memory.size()) throw py::index_error("there is no such buffer");
    if (begin > memory[number].size() || size > memory[number].size() - begin) {
      throw py::index_error("row " + std::to_string(i) + " is outside its buffer");
    }
    rows.push_back(memory[number].subspan(begin, size));
  }
  return {BlobTable::of_spans(std::move(rows)), owner};
}

// Images (count, height, width) or (count, height, width, channels), with any strides.
PyBlobTable table_of_pixels(const py::array_t<uint8_t>& images) {
  if (images.ndim() < 3 || images.ndim() > 4) throw py::value_error("images have 3 or 4 axes");
  RawImage first;
  first.channels = images.ndim() == 3 ? 1 : static_cast<int>(images.shape(3));
  if (first.channels != 1 && first.channels != 3) throw py::value_error("an image has 1 or 3 channels");
  constexpr py::ssize_t kMost = std::numeric_limits<int>::max();
  if (images.shape(1) > kMost || images.shape(2) > kMost)
    throw py::value_error("an image's edges are below 2^31 pixels");
  first.data = static_cast<const uint8_t*>(images.data());
  first.size = {static_cast<int>(images.shape(2)), static_cast<int>(images.shape(1))};
  first.row_stride = images.strides(1);
  first.pixel_stride = images.strides(2);
  if (images.ndim() == 4) first.channel_stride = images.strides(3);
  return {BlobTable::of_pixels(first, images.strides(0), images.shape(0)), py::memoryview(images)};
}

PyBlobTable table_of_parts(const py::list& parts) {
  std::vector<std::shared_ptr<const BlobTable>> tables;
  for (const py::handle part : parts) tables.push_back(py::cast<PyBlobTable&>(part).table);
  return {BlobTable::of_parts(std::move(tables)), py::tuple(parts)};  // a copy: the caller may change the list
}

PyBlobTable table_of_rows(const py::object& table, const Int64s& rows) {
  return {BlobTable::of_rows(py::cast<PyBlobTable&>(table).table, to_vector<int64_t>(rows)), table};
}

std::unique_ptr<PyPipeline> make_pipeline(const py::object& recipe, const py::buffer& lut, const std::string& layout,
                                          int threads, int64_t max_pixels, const std::string& pass_order,
                                          int slots_kept, const std::string& isa,
                                          const std::optional<py::capsule>& backend, const std::string& decoder,
                                          int frames) {
  PipelineOptions options{to_sample_options(recipe, lut, layout, max_pixels, pass_order, frames)};
  if (backend) options.backend = unwrap_backend(*backend);
  options.recorder = process_recorder();
  options.threads = threads;
  options.slots_kept = static_cast<size_t>(slots_kept);
  options.kernels = named_kernels(isa);
  if (decoder != "pillow" && decoder != "video") throw py::value_error("there is no decoder of this name: " + decoder);
  options.decoder = decoder == "video" ? "video" : "pillow";
  return std::make_unique<PyPipeline>(std::move(options));
}

// `memory`: a tensor to write the batch into, or a list of one for each view; None: a slot of the pipeline's pool.
// `plans`: see to_given_plans.
// `keep_table`: whether the table lives as long as the pipeline. Otherwise it is let go with the batch, which needs
// memory: then it is waited for.
std::unique_ptr<HeldBatch> submit(const py::object& self, const py::object& table, const Int64s& rows,
                                  const Doubles& draws, const py::object& memory, uintptr_t stream,
                                  const py::list& plans, bool keep_table) {
  auto& own = py::cast<PyPipeline&>(self);
  std::vector<GivenPlan> given = to_given_plans(plans);
  if (!given.empty() && memory.is_none()) throw py::value_error("a batch with plans needs memory");
  if (!keep_table && memory.is_none()) throw py::value_error("a batch with a table of its own needs memory");
  const std::shared_ptr<const BlobTable> blobs = keep_table ? own.keep(table) : py::cast<PyBlobTable&>(table).table;
  std::vector<int64_t> list = to_vector<int64_t>(rows);
  std::vector<double> numbers = to_vector<double>(draws);
  std::shared_ptr<EntryPoints> entry_points = py::cast<PyBlobTable&>(table).entry_points;
  BatchMemory to = to_batch_memory(memory, stream);
  auto held = std::make_unique<HeldBatch>(memory, self);
  if (!keep_table) held->source = table;
  {
    const Unlocked unlocked;  // a device may have to finish an earlier batch first
    held->batch = own.pipeline->submit(blobs, std::move(list), std::move(numbers), std::move(to),
                                       std::move(entry_points), std::move(given));
  }
  return held;
}

// Makes other samples at some positions of a batch that is ready, in its memory.
std::unique_ptr<HeldBatch> repair(const py::object& self, const HeldBatch& held, std::vector<int> places,
                                  const py::object& table, const Int64s& rows, const Doubles& draws) {
  auto& own = py::cast<PyPipeline&>(self);
  const std::shared_ptr<const BlobTable> blobs = own.keep(table);
  std::vector<int64_t> list = to_vector<int64_t>(rows);
  std::vector<double> numbers = to_vector<double>(draws);
  auto second = std::make_unique<HeldBatch>(held.memory, self);
  {
    const Unlocked unlocked;
    second->batch = own.pipeline->repair(*held.batch, std::move(places), blobs, std::move(list), std::move(numbers));
  }
  return second;
}

// Waits without the GIL, and checks for Ctrl-C ten times a second.
bool wait(PyPipeline& self, const HeldBatch& held, double seconds) {
  const Batch& batch = *held.batch;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    bool complete = false;
    {
      const Unlocked unlocked;
      complete = self.pipeline->wait(batch, std::clamp(left, 0ms, 100ms));
    }
    if (complete) return true;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (left <= 0ms || batch.cancelled.load() || self.pipeline->closed()) return false;
  }
}

// A tensor (samples, C, H, W), also of clips, or (samples, H, W, C) where the strides say so, over the batch's slot;
// only once per batch. The slot returns to the pool when the last tensor on it is freed, even while a worker that has
// just made the last sample still holds the batch.
py::capsule tensor(const HeldBatch& held, const PipelineOptions& options, int samples, uint8_t type_code) {
  Batch& batch = *held.batch;
  Lease slot = batch.slot.take();
  if (slot == nullptr) throw std::logic_error("this batch has no slot, or it was handed out before");
  const OutputStrides& strides = options.strides;
  const int64_t item = strides.element_bytes, channel = strides.channel_stride / strides.frames / item;
  std::array<int64_t, 4> shape = {samples, strides.channels, options.recipe.output.height, options.recipe.output.width};
  std::array<int64_t, 4> steps = {static_cast<int64_t>(strides.sample_bytes) / item, channel, strides.row_stride / item,
                                  strides.pixel_stride / item};
  if (strides.channels_last_axis) {
    std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
    std::rotate(steps.begin() + 1, steps.begin() + 2, steps.end());
  }
  return slot_tensor(std::move(slot), batch.memory, {type_code, static_cast<uint8_t>(8 * item), 1}, shape, steps);
}

// The sample at a position of a batch of different sizes: a tensor (C, H, W); only once per sample.
py::capsule sized_tensor(const HeldBatch& held, const PipelineOptions& options, int place, uint8_t type_code) {
  SizedSample& made = held.batch->sized->at(static_cast<size_t>(place));
  Lease slot = made.memory.take();
  if (slot == nullptr) throw std::logic_error("this sample was not made, or it was handed out before");
  const OutputStrides strides =
      strides_of(options.layout, options.strides.channels, made.size, options.strides.element_bytes);
  const int64_t item = strides.element_bytes;
  const std::array<int64_t, 3> shape = {strides.channels, made.size.height, made.size.width};
  const std::array<int64_t, 3> steps = {strides.channel_stride / item, strides.row_stride / item,
                                        strides.pixel_stride / item};
  uint8_t* memory = slot.get();
  return slot_tensor(std::move(slot), memory, {type_code, static_cast<uint8_t>(8 * item), 1}, shape, steps);
}

template <auto pop>
std::unique_ptr<HeldJob> next_job(const py::object& self, double seconds) {
  auto held = std::make_unique<HeldJob>(PythonJob{}, self);  // allocated first: if this throws, no job is lost
  std::optional<PythonJob> job;
  {
    const Unlocked unlocked;
    job = (held->pipeline->*pop)(std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3)));
  }
  if (!job) return nullptr;
  held->job = std::move(*job);
  return held;
}

// The image for a call, RGBX of shape (height, width, 4). Valid as long as the job.
py::array_t<uint8_t> pixels_of(const py::object& job) {
  const PythonJob& self = py::cast<HeldJob&>(job).job;
  if (self.call < 0) throw std::logic_error("this job has no pixels yet: it is to be decoded");
  return py::array_t<uint8_t>({self.size.height, self.size.width, kPixelBytes}, self.bytes.data(), job);
}

// Ends a job with the image that Python decoded or a Python step returned; `pixels`: RGBX, RGB, or gray levels.
void finish_with_image(PyPipeline& self, HeldJob& held, const py::buffer& pixels, int width, int height,
                       int64_t python_ns) {
  const py::buffer_info info = bytes_of(pixels);
  const auto bytes = static_cast<size_t>(info.size * info.itemsize);
  const size_t count = static_cast<size_t>(width) * static_cast<size_t>(height);
  const auto* data = static_cast<const uint8_t*>(info.ptr);
  const Size size{width, height};
  RawImage image;
  if (bytes == count) {
    image = gray_image(data, size);
  } else if (bytes == count * 3) {
    image = rgb_image(data, size);
  } else if (bytes == count * kPixelBytes) {
    image = rgbx_image(data, size);
  } else {
    throw py::value_error("the pixels do not fit the size");
  }
  const Unlocked unlocked;
  self.pipeline->finish(held.job, image, python_ns);
}

// `width`, `height`: of what the sample was made from, see Batch.sizes; 0: as they are.
void finish_elements(PyPipeline& self, HeldJob& held, const py::buffer& elements, int64_t python_ns, int width,
                     int height) {
  const py::buffer_info info = bytes_of(elements);
  const auto bytes = static_cast<size_t>(info.size * info.itemsize);
  const Unlocked unlocked;
  self.pipeline->finish_elements(held.job, {static_cast<const uint8_t*>(info.ptr), bytes}, python_ns, {width, height});
}

// (height, width) of each sample's image before any step, int32 (samples, 2); (0, 0) where none was opened.
py::array_t<int32_t> sizes_of(const HeldBatch& held) {
  const Batch& batch = *held.batch;
  if (!batch.ready.load(std::memory_order_acquire)) throw std::logic_error("the batch is not complete yet");
  py::array_t<int32_t> sizes({batch.size(), 2});
  auto to = sizes.mutable_unchecked<2>();
  for (int i = 0; i < batch.size(); ++i) {
    const Size size = batch.sizes[static_cast<size_t>(i)];
    to(i, 0) = size.height;
    to(i, 1) = size.width;
  }
  return sizes;
}

}  // namespace

void bind_pipeline(py::module_& module) {
  py::class_<PyBlobTable>(module, "BlobTable")
      .def_static("of_files", &table_of_files, py::arg("paths"), py::arg("offsets"))
      .def_static("of_memory", &table_of_memory, py::arg("buffers"))
      .def_static("of_spans", &table_of_spans, py::arg("buffers"), py::arg("which"), py::arg("begins"),
                  py::arg("sizes"))
      .def_static("of_pixels", &table_of_pixels, py::arg("images").noconvert())
      .def_static("of_parts", &table_of_parts, py::arg("parts"))
      .def_static("of_rows", &table_of_rows, py::arg("table"), py::arg("rows"))
      .def(
          "entered_by",
          [](const PyBlobTable& self, std::shared_ptr<EntryPoints> points) {
            return PyBlobTable{self.table, self.owner, std::move(points)};
          },
          py::arg("entry_points"), "The same table, whose JPEGs are entered at what is known and learned of them.")
      .def("__len__", [](const PyBlobTable& self) { return self.table->size(); });

  py::class_<HeldBatch>(module, "Batch")
      .def("__len__", [](const HeldBatch& self) { return self.batch->size(); })
      .def_property_readonly("id", [](const HeldBatch& self) { return self.batch->id; })
      .def_property_readonly("memory", [](const HeldBatch& self) { return self.memory; })
      .def_property_readonly("broken", [](const HeldBatch& self) { return self.batch->broken(); })
      .def_property_readonly("cancelled", [](const HeldBatch& self) { return self.batch->cancelled.load(); })
      .def_property_readonly("sizes", &sizes_of)
      .def("release", &HeldBatch::release)
      .def("take_failures", [](const HeldBatch& self) {
        std::vector<std::tuple<int, std::string, std::string, int>> list;
        for (const Failure& one : self.batch->take_failures()) {
          list.emplace_back(one.sample, stage_name(one.stage), one.reason, one.os_errno);
        }
        return list;
      });

  py::class_<HeldJob>(module, "PythonJob")
      .def_property_readonly("data",
                             [](const HeldJob& self) {
                               const std::vector<uint8_t>& bytes = self.job.bytes;
                               return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                             })
      .def_property_readonly("path", [](const HeldJob& self) { return py::bytes(self.job.path); })
      .def_property_readonly("batch_id",
                             [](const HeldJob& self) { return self.job.batch == nullptr ? 0 : self.job.batch->id; })
      .def_property_readonly("sample", [](const HeldJob& self) { return self.job.sample; })
      .def_property_readonly("row", &HeldJob::row)
      .def_property_readonly("call", [](const HeldJob& self) { return self.job.call; })
      .def_property_readonly("pixels", &pixels_of)
      .def("draw", &HeldJob::draw, py::arg("column"))
      .def_property_readonly("reason", [](const HeldJob& self) { return self.job.reason; });

  py::class_<PyPipeline>(module, "Pipeline")
      .def(py::init(&make_pipeline), py::arg("recipe"), py::arg("lut"), py::kw_only(), py::arg("layout"),
           py::arg("threads"), py::arg("max_pixels"), py::arg("pass_order"), py::arg("slots_kept"), py::arg("isa") = "",
           py::arg("backend") = py::none(), py::arg("decoder") = "pillow", py::arg("frames") = 1)
      .def("submit", &submit, py::arg("table"), py::arg("rows"), py::arg("draws"), py::arg("memory") = py::none(),
           py::arg("stream") = 0, py::arg("plans") = py::list(), py::arg("keep_table") = true)
      .def("repair", &repair, py::arg("batch"), py::arg("places"), py::arg("table"), py::arg("rows"), py::arg("draws"))
      .def("wait", &wait, py::arg("batch"), py::arg("seconds"))
      .def("hand_over",
           [](PyPipeline& self, const HeldBatch& held, uintptr_t stream) {
             const Unlocked unlocked;
             self.pipeline->hand_over(*held.batch, stream);
           })
      .def(
          "cancel", [](PyPipeline& self, const HeldBatch& held) { self.pipeline->cancel(*held.batch); },
          py::call_guard<Unlocked>())
      .def(
          "run_one", [](PyPipeline& self) { return self.pipeline->run_one(); }, py::call_guard<Unlocked>())
      .def("next_pillow_job", &next_job<&Pipeline::next_pillow_job>, py::arg("seconds"))
      .def_property_readonly("pillow_jobs_waiting",
                             [](const PyPipeline& self) { return self.pipeline->pillow_jobs_waiting(); })
      .def("next_call", &next_job<&Pipeline::next_call>, py::arg("seconds"))
      .def_property_readonly("calls_waiting", [](const PyPipeline& self) { return self.pipeline->calls_waiting(); })
      .def("finish", &finish_with_image)
      .def("finish_elements", &finish_elements, py::arg("job"), py::arg("elements"), py::arg("python_ns"),
           py::arg("width") = 0, py::arg("height") = 0)
      .def("fail", [](PyPipeline& self, HeldJob& held,
                      std::string reason) { self.pipeline->fail(held.job, std::move(reason)); })
      .def("put_back", [](PyPipeline& self, HeldJob& held) { self.pipeline->put_back(held.job); })
      .def("tensor", [](const PyPipeline& self, const HeldBatch& batch, int samples,
                        uint8_t type_code) { return tensor(batch, self.pipeline->options(), samples, type_code); })
      .def("sized_tensor",
           [](const PyPipeline& self, const HeldBatch& batch, int place, uint8_t type_code) {
             return sized_tensor(batch, self.pipeline->options(), place, type_code);
           })
      .def("compact", [](const PyPipeline& self, const HeldBatch& held,
                         const std::vector<int>& places) { self.pipeline->compact(*held.batch, places); })
      .def(
          "close", [](PyPipeline& self) { self.pipeline->close(); }, py::call_guard<Unlocked>())
      .def_property_readonly("closed", [](const PyPipeline& self) { return self.pipeline->closed(); })
      .def_property_readonly("slots", [](const PyPipeline& self) { return self.pipeline->slots(); })
      .def_property_readonly("sample_bytes",
                             [](const PyPipeline& self) { return self.pipeline->options().strides.sample_bytes; })
      .def_property_readonly("trouble", [](const PyPipeline& self) { return self.pipeline->trouble(); })
      .def("stats",
           [](const PyPipeline& self) {
             std::vector<std::tuple<std::string, int64_t, int64_t>> list;
             for (const StageReport& one : self.pipeline->stats()) list.emplace_back(one.stage, one.items, one.busy_ns);
             return list;
           })
      .def("durations",
           [](const PyPipeline& self) {
             py::dict found;
             for (const StageReport& one : self.pipeline->stats()) {
               const auto size = static_cast<py::ssize_t>(one.durations.size());
               if (size > 0) found[py::str(one.stage)] = py::array_t<int64_t>(size, one.durations.data());
             }
             return found;
           })
      .def_property_readonly("bytes_read", [](const PyPipeline& self) { return self.pipeline->bytes_read(); })
      .def_property_readonly("thread_ids", [](const PyPipeline& self) { return self.pipeline->thread_ids(); })
      .def(
          "resize", [](PyPipeline& self, int threads) { self.pipeline->resize(threads); }, py::arg("threads"),
          py::call_guard<Unlocked>())
      .def_property_readonly("threads", [](const PyPipeline& self) { return self.pipeline->threads(); })
      .def_property_readonly("asleep", [](const PyPipeline& self) { return self.pipeline->asleep(); })
      .def(
          "bind_threads", [](PyPipeline& self, const std::vector<int>& cpus) { self.pipeline->bind_threads(cpus); },
          py::arg("cpus"));
}

}  // namespace headrace
