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

/// What is made of every sample, and how its elements lie in memory.
struct SampleOptions {
  Recipe recipe;
  OutputStrides strides;  // of samples of the recipe's output size; without one, only the bytes of an element count
  Layout layout = Layout::kPlanar;
  std::vector<uint8_t> lut;                // [channels][256] elements
  std::vector<uint8_t> erased;             // [row][channels] elements, what Erase writes
  std::shared_ptr<const Texture> texture;  // elements are its channels of the image's bytes; null: as in lut
  int64_t max_pixels = 0;                  // larger images go to Pillow, which has a limit of its own; 0: no limit
  bool upright = false;                    // images that have an EXIF orientation go to Pillow, which turns them
  bool pillow_alone = false;               // every encoded image goes to Pillow: the native decoder has no palettes
};

/// Memory that the caller brings for a batch. Where it is a device's, work already on `stream` may still use it.
struct BatchMemory {
  uint8_t* data = nullptr;
  uintptr_t stream = 0;
};

/// Memory and workers of one pipeline. Any thread may call any method.
class Backend {
 public:
  virtual ~Backend() = default;
  /// Sets `batch.memory`: to the caller's memory, or where that is null to memory of the backend. Throws
  /// std::bad_alloc; a device also throws std::runtime_error.
  virtual void prepare(Batch& batch, BatchMemory memory) = 0;
  /// A worker for one thread.
  virtual std::unique_ptr<SampleWorker> make_worker() = 0;
  /// No batch is prepared after this call: frees unused memory and ends the backend's own threads. Idempotent.
  virtual void retire() noexcept = 0;
  /// Pieces of memory for batches that exist now, free or in use.
  virtual size_t slots() const = 0;
  /// Null where a batch is complete with its last sample. Else what a device does with the batch after that; lives as
  /// long as the backend.
  virtual DeviceSide* device_side() { return nullptr; }
};

}  // namespace headrace
