// Keeps Python objects alive as long as the core's objects use their memory.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include "bind/core/distinct.h"
#include "bind/unlocked.h"
#include "core/pipeline/pipeline.h"

namespace headrace {

namespace py = pybind11;

/// A table, the Python objects whose memory it points into, and what is learned about its JPEGs.
struct PyBlobTable {
  std::shared_ptr<const BlobTable> table;
  py::object owner;
  std::shared_ptr<EntryPoints> entry_points = nullptr;  // of its JPEGs; null: none
};

/// The memory of a tensor; of a list of one for each view; None: none.
inline BatchMemory to_batch_memory(const py::object& memory, uintptr_t stream) {
  const auto data_of = [](const py::handle& tensor) {
    return reinterpret_cast<uint8_t*>(tensor.attr("data_ptr")().cast<uintptr_t>());
  };
  BatchMemory to{nullptr, stream};
  if (py::isinstance<py::list>(memory)) {
    for (const py::handle tensor : memory) to.views.push_back(data_of(tensor));
  } else if (!memory.is_none()) {
    to.data = data_of(memory);
  }
  return to;
}

constexpr auto kPatience = std::chrono::seconds(2);  // longer than decoding any image of usual size

/// A pipeline and the Python objects of its tables. Worker threads hold tables but must not release Python objects:
/// this keeps the objects until the workers have been joined.
struct PyPipeline {
  explicit PyPipeline(PipelineOptions options) : pipeline(std::make_unique<Pipeline>(std::move(options))) {}
  ~PyPipeline() {
    bool settled = false;
    {
      const Unlocked unlocked;
      pipeline->close();
      settled = pipeline->settle(kPatience);
      if (settled) pipeline.reset();
    }
    if (settled) return;
    // A thread is stuck, for example in a read from a file system that does not answer. Everything it may use is
    // leaked.
    (void)pipeline.release();
    for (py::object& one : kept.take()) (void)one.release();
  }

  /// The native table of a PyBlobTable, which is kept alive as long as this if it needs Python objects. Any thread.
  const std::shared_ptr<const BlobTable>& keep(const py::object& table) {
    const auto& held = py::cast<PyBlobTable&>(table);
    if (!held.owner.is_none()) kept.add(table);
    return held.table;
  }

  struct SameObject {
    bool operator()(const py::object& a, const py::object& b) const { return a.is(b); }
  };
  Distinct<py::object, SameObject> kept;  // declared first: dropped last
  std::unique_ptr<Pipeline> pipeline;
};

/// A batch that Python holds, and the memory that the caller passed for it. Destroyed before release(), for example
/// after an interrupt between two calls, it cancels the batch first, so that no worker writes to freed memory.
struct HeldBatch {
  py::object source;  // the table that only this batch reads from; null: the pipeline keeps its table
  std::shared_ptr<Batch> batch;
  py::object memory;  // None: the batch has a slot of the pipeline's pool, which workers also own

  /// Constructed before the batch is submitted: nothing may throw after that.
  HeldBatch(py::object brought, py::object pipeline) : memory(std::move(brought)) {
    if (!memory.is_none()) owner_.store(pipeline.release().ptr());
  }
  ~HeldBatch() {
    const py::object owner = disown();
    if (!owner || batch == nullptr) return;
    Pipeline& pipeline = *py::cast<PyPipeline&>(owner).pipeline;
    const Unlocked unlocked;
    pipeline.cancel(*batch);
  }
  HeldBatch(const HeldBatch&) = delete;
  HeldBatch& operator=(const HeldBatch&) = delete;

  /// Returns the memory to the caller: the batch is not cancelled any more.
  void release() { disown(); }

 private:
  /// Of several threads that call it, one gets the owner.
  py::object disown() { return py::reinterpret_steal<py::object>(owner_.exchange(nullptr)); }

  std::atomic<PyObject*> owner_{nullptr};  // the PyPipeline, kept alive to cancel; null without `memory`
};

/// A job that Python holds. Destroyed unfinished, for example after an interrupt between two calls, it returns to its
/// queue. One thread at a time may use it: a lane hands each job to one thread.
struct HeldJob {
  PythonJob job;
  py::object owner;  // the PyPipeline, kept alive for that
  Pipeline* pipeline;

  HeldJob(PythonJob popped, py::object from)
      : job(std::move(popped)), owner(std::move(from)), pipeline(py::cast<PyPipeline&>(owner).pipeline.get()) {}
  ~HeldJob() {
    try {
      pipeline->put_back(job);
    } catch (const std::bad_alloc&) {
      pipeline->fail(job, kNoMemory);
    }
  }
  HeldJob(const HeldJob&) = delete;
  HeldJob& operator=(const HeldJob&) = delete;

  /// One of the sample's random numbers. Throws std::logic_error where the job is finished.
  double draw(int column) const {
    const size_t each = of().draws.size() / of().rows.size();
    return of().draws.at(static_cast<size_t>(job.sample) * each + static_cast<size_t>(column));
  }
  /// The sample's row in the table of its batch. Throws std::logic_error where the job is finished.
  int64_t row() const { return of().rows.at(static_cast<size_t>(job.sample)); }

 private:
  const Batch& of() const {
    if (job.batch == nullptr) throw std::logic_error("this job is finished already");
    return *job.batch;
  }
};

}  // namespace headrace
