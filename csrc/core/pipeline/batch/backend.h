// What a pipeline needs to fill batches: memory for them, and workers that make single samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/fuse/sinks/output.h"
#include "core/kernels/textures/texture.h"
#include "core/pipeline/batch/batch.h"
#include "core/pipeline/batch/sample_worker.h"
#include "core/plan/plan.h"

namespace headrace {

class DeviceSide;

/// What is made of every sample, and how its elements are stored in memory.
struct SampleOptions {
  Recipe recipe;
  OutputStrides strides;  // for samples of the recipe's output size; without one, only the bytes of an element matter
  Layout layout = Layout::kPlanar;
  std::vector<uint8_t> lut;                // [channels][256] elements
  std::vector<uint8_t> erased;             // [row][channels] elements, what Erase writes
  std::shared_ptr<const Texture> texture;  // elements are its channels, made from the image's bytes; null: as in lut
  int64_t max_pixels = 0;                  // larger images go to Pillow, which has a limit of its own; 0: no limit
  bool upright = false;                    // images that have an EXIF orientation go to Pillow, which turns them
  const char* decoder = "pillow";          // stage of the files that Python threads decode; a literal
  bool indices = false;                    // palette indices are wanted: of a PNG, or of any other file by Pillow
};

/// Memory that the caller passes for a batch. If it is device memory, work already on `stream` may still use it.
struct BatchMemory {
  uint8_t* data = nullptr;
  uintptr_t stream = 0;
  std::vector<uint8_t*> views{};  // one for each view, in place of `data`
};

/// Memory and workers of one pipeline. Any thread may call any method.
class Backend {
 public:
  virtual ~Backend() = default;
  /// Sets `batch.memory` to the caller's memory, or if that is null to memory of the backend. Throws std::bad_alloc; a
  /// device also throws std::runtime_error.
  virtual void prepare(Batch& batch, BatchMemory memory) = 0;
  /// A worker for one thread.
  virtual std::unique_ptr<SampleWorker> make_worker() = 0;
  /// Frees unused memory and ends the backend's own threads. No batch may be prepared after this call. Idempotent.
  virtual void retire() noexcept = 0;
  /// The recipes of a sample's views, one after another; empty where it has one output, the pipeline's recipe's.
  virtual std::vector<const Recipe*> views() const { return {}; }
  /// Number of pieces of memory for batches that exist now, free or in use.
  virtual size_t slots() const = 0;
  /// Null if a batch is complete with its last sample. Otherwise the device's part, which processes the batch after
  /// that; lives as long as the backend.
  virtual DeviceSide* device_side() { return nullptr; }
};

}  // namespace headrace
