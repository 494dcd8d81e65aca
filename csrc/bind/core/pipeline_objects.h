// What the binding of the pipeline keeps with the core's objects: the Python objects whose memory they use.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/pipeline/pipeline.h"

namespace headrace {

namespace py = pybind11;

/// A table and the Python objects whose memory it points into.
struct PyBlobTable {
  std::shared_ptr<const BlobTable> table;
  py::object owner;
};

constexpr auto kPatience = std::chrono::seconds(2);  // longer than any image of sane size takes

/// Worker threads hold tables and must never be the ones to drop a Python object: this side keeps them all, and drops
// them after the workers have been joined.
struct PyPipeline {
  explicit PyPipeline(PipelineOptions options) : pipeline(std::make_unique<Pipeline>(std::move(options))) {}
  ~PyPipeline() {
    bool settled = false;
    {
      const py::gil_scoped_release unlocked;
      pipeline->close();
      settled = pipeline->settle(kPatience);
      if (settled) pipeline.reset();
    }
    if (settled) return;
    // A thread is stuck in a read from a file system that does not answer, say: what it may still touch is left to it.
    (void)pipeline.release();
    for (py::object& one : kept) (void)one.release();
  }

  const std::shared_ptr<const BlobTable>& keep(const py::object& table) {
    bool known = false;
    for (const py::object& one : kept) known = known || one.is(table);
    if (!known) kept.push_back(table);
    return py::cast<PyBlobTable&>(table).table;
  }

  std::vector<py::object> kept;  // declared first: dropped last
  std::unique_ptr<Pipeline> pipeline;
};

/// A batch that Python holds, with the memory that the caller brought for it. Where Python drops it before that memory
/// is the caller's, as an interrupt between two of its calls may, the batch is cancelled first: no worker writes into
/// memory that was freed.
struct HeldBatch {
  std::shared_ptr<Batch> batch;
  py::object memory;  // None: the batch has a slot of the pipeline's ring, which workers keep alive themselves
  py::object owner;   // the PyPipeline, which has to be there to cancel; None without `memory`

  /// Made before the batch is submitted, after which nothing may fail.
  HeldBatch(py::object brought, py::object pipeline) : memory(std::move(brought)), owner(std::move(pipeline)) {
    if (memory.is_none()) owner = py::none();
  }
  ~HeldBatch() {
    if (owner.is_none() || batch == nullptr) return;
    Pipeline& pipeline = *py::cast<PyPipeline&>(owner).pipeline;
    const py::gil_scoped_release unlocked;
    pipeline.cancel(*batch);
  }
  HeldBatch(const HeldBatch&) = delete;
  HeldBatch& operator=(const HeldBatch&) = delete;

  /// From now on the memory is the caller's.
  void release() { owner = py::none(); }
};

/// A job in Python's hands. One that Python drops, as an interrupt between two of its calls may make it, goes back.
struct HeldJob {
  PythonJob job;
  py::object owner;  // the PyPipeline, which has to be there for that
  Pipeline* pipeline;

  HeldJob(PythonJob popped, py::object from)
      : job(std::move(popped)), owner(std::move(from)), pipeline(py::cast<PyPipeline&>(owner).pipeline.get()) {}
  ~HeldJob() {
    try {
      pipeline->put_back(job);
    } catch (const std::bad_alloc&) {  // then its sample is never made, and a timeout tells
    }
  }
  HeldJob(const HeldJob&) = delete;
  HeldJob& operator=(const HeldJob&) = delete;
};

}  // namespace headrace
