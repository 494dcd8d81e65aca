// Binds HelperJob: samples of a pipeline that another machine makes.
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/core/pipeline_objects.h"
#include "bind/unlocked.h"
#include "core/base/pool.h"

namespace py = pybind11;

namespace headrace {
namespace {

/// A job that Python holds. Destroyed unfinished, it returns its samples. One thread at a time may use it.
struct HeldHelperJob {
  HelperJob job;
  py::object owner;  // the PyPipeline, kept alive
  Pipeline* pipeline;

  HeldHelperJob(HelperJob taken, py::object from)
      : job(std::move(taken)), owner(std::move(from)), pipeline(py::cast<PyPipeline&>(owner).pipeline.get()) {}
  ~HeldHelperJob() { pipeline->put_back(job); }
  HeldHelperJob(const HeldHelperJob&) = delete;
  HeldHelperJob& operator=(const HeldHelperJob&) = delete;

  const Batch& batch() const {
    if (job.batch == nullptr) throw std::logic_error("this job is finished already");
    return *job.batch;
  }
};

std::unique_ptr<HeldHelperJob> next_job(const py::object& pipeline, int most, int keep, double seconds) {
  auto held =
      std::make_unique<HeldHelperJob>(HelperJob{}, pipeline);  // allocated first: if this throws, no job is lost
  std::optional<HelperJob> job;
  {
    const Unlocked unlocked;
    job = held->pipeline->next_helper_job(most, keep, std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3)));
  }
  if (!job) return nullptr;
  held->job = std::move(*job);
  return held;
}

py::array_t<int64_t> rows_of(const HeldHelperJob& held) {
  return py::array_t<int64_t>(held.job.samples.count, held.batch().rows.data() + held.job.samples.first);
}

// float64 (samples, draws of a sample).
py::array_t<double> draws_of(const HeldHelperJob& held) {
  const Batch& batch = held.batch();
  const size_t each = batch.draws.size() / batch.rows.size();
  return py::array_t<double>({static_cast<size_t>(held.job.samples.count), each},
                             batch.draws.data() + static_cast<size_t>(held.job.samples.first) * each);
}

using Buffer = std::vector<uint8_t>;
constexpr size_t kMostKept = size_t{32} << 20;  // bytes of a buffer

// Buffers of files, used again: the pages of new ones would cost as much as reading.
Pool<Buffer>& buffers() {
  static auto* const pool = new Pool<Buffer>;  // never destroyed: an array may be freed later than the module
  return *pool;
}

// The bytes of the samples' files one after another, and the number of bytes of each; 0: it cannot be read.
std::pair<py::array_t<uint8_t>, py::array_t<int64_t>> files_of(const HeldHelperJob& held) {
  held.batch();
  std::unique_ptr<Buffer> files = buffers().take([] { return std::make_unique<Buffer>(); });
  std::vector<int64_t> sizes;
  {
    const Unlocked unlocked;
    sizes = held.pipeline->read_files(held.job, *files);
  }
  Buffer& content = *files;
  const py::capsule owner(files.release(), [](void* one) {
    std::unique_ptr<Buffer> buffer(static_cast<Buffer*>(one));
    if (buffer->capacity() <= kMostKept) buffers().give(std::move(buffer));
  });
  return {py::array_t<uint8_t>(static_cast<py::ssize_t>(content.size()), content.data(), owner),
          py::array_t<int64_t>(static_cast<py::ssize_t>(sizes.size()), sizes.data())};
}

// See HelperAnswer. `made`: uint8 (samples,); `sizes`: int32 (samples, 2).
void finish(HeldHelperJob& held, const py::buffer& samples, bool finished, const Vector<uint8_t>& made,
            const Vector<int32_t>& sizes) {
  const py::buffer_info info = bytes_of(samples);
  const HelperAnswer answer{span_of(info), finished, span_of(made), span_of(sizes)};
  const Unlocked unlocked;
  held.pipeline->finish(held.job, answer);
}

}  // namespace

void bind_helpers(py::module_& module) {
  py::class_<HeldHelperJob>(module, "HelperJob")
      .def_property_readonly("count", [](const HeldHelperJob& self) { return self.job.samples.count; })
      .def_property_readonly("batch_id", [](const HeldHelperJob& self) { return self.batch().id; })
      .def_property_readonly("first", [](const HeldHelperJob& self) { return self.job.samples.first; })
      .def_property_readonly("rows", &rows_of)
      .def_property_readonly("draws", &draws_of)
      .def("files", &files_of)
      .def("finish", &finish, py::arg("samples"), py::kw_only(), py::arg("finished"), py::arg("made"), py::arg("sizes"))
      .def("put_back", [](HeldHelperJob& self) { self.pipeline->put_back(self.job); });
  module.def(
      "crc32",
      [](const py::buffer& bytes) {
        const py::buffer_info info = bytes_of(bytes);
        const Unlocked unlocked;
        return checksum(span_of(info));
      },
      py::arg("bytes"));
  module.def("next_helper_job", &next_job, py::arg("pipeline"), py::arg("most"), py::arg("keep"), py::arg("seconds"));
}

}  // namespace headrace
