// Memory of batches on this machine: slots of a pool, or memory that the caller passes.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include "core/pipeline/batch/backend.h"

namespace headrace {

/// Any thread may call any method.
class BatchSlots {
 public:
  /// `keep`: most free slots that stay mapped.
  explicit BatchSlots(size_t keep) : keep_(keep) {}

  /// Sets `batch.memory` to the caller's memory, or if that is null to a slot of at least `bytes`. Throws
  /// std::bad_alloc.
  void prepare(Batch& batch, BatchMemory memory, size_t bytes);
  /// See SlotPool::retire.
  void retire() noexcept;
  /// See Backend::slots.
  size_t count() const;

 private:
  Lease acquire(size_t bytes, bool* is_new);

  const size_t keep_;
  mutable std::mutex mutex_;
  std::shared_ptr<SlotPool> pool_;  // guarded by mutex_; its slots hold the largest batch so far
};

}  // namespace headrace
