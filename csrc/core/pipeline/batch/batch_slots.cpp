// Leases a slot for each batch, from a pool whose slots are as large as the largest batch so far.
#include "core/pipeline/batch/batch_slots.h"

#include <utility>

namespace headrace {

void BatchSlots::prepare(Batch& batch, BatchMemory memory, size_t bytes) {
  batch.memory = memory.data;
  if (memory.data != nullptr) return;
  Lease slot = acquire(bytes, &batch.is_new_memory);
  batch.memory = slot.get();
  batch.slot.put(std::move(slot));
}

// Batches have one size, except for a smaller last one. A batch larger than all before starts a new pool.
Lease BatchSlots::acquire(size_t bytes, bool* is_new) {
  std::shared_ptr<SlotPool> current;
  {
    const std::lock_guard lock(mutex_);
    if (pool_ == nullptr || pool_->slot_bytes() < bytes) pool_ = SlotPool::make(bytes, keep_);
    current = pool_;
  }
  return current->acquire(is_new);
}

void BatchSlots::retire() noexcept {
  const std::lock_guard lock(mutex_);
  if (pool_ != nullptr) pool_->retire();
}

size_t BatchSlots::count() const {
  const std::lock_guard lock(mutex_);
  return pool_ == nullptr ? 0 : pool_->slots();
}

}  // namespace headrace
