// Keeps the free slots of one size. The memory itself is that of slot_memory.h.
#include "core/pipeline/batch/slot_pool.h"

#include "core/pipeline/batch/slot_memory.h"

namespace headrace {

std::shared_ptr<SlotPool> SlotPool::make(size_t slot_bytes, size_t keep) {
  return std::shared_ptr<SlotPool>(new SlotPool(slot_bytes, keep));
}

SlotPool::~SlotPool() {
  if (fork_.forked()) return;  // the fork may have copied the list in the middle of a change
  for (uint8_t* slot : free_) leave_slot(slot, slot_bytes_);
}

Lease SlotPool::acquire(bool* is_new) {
  if (is_new != nullptr) *is_new = false;
  uint8_t* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    free_.reserve(keep_);  // so that give_back cannot throw
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
    }
  }
  if (slot == nullptr) {
    slot = take_slot(slot_bytes_, is_new);  // without the lock, so that other threads can take free slots meanwhile
    const std::lock_guard lock(mutex_);
    ++slots_;
  }
  return Lease(slot, [pool = shared_from_this()](uint8_t* memory) { pool->give_back(memory); });
}

void SlotPool::give_back(uint8_t* slot) noexcept {
  // In a forked child a thread that does not exist there may hold the lock. The memory is the child's own copy.
  if (fork_.forked()) return unmap_slot(slot, slot_bytes_);
  bool retired = false;
  {
    const std::lock_guard lock(mutex_);
    if (free_.size() < keep_) {
      free_.push_back(slot);
      return;
    }
    --slots_;
    retired = retired_;
  }
  retired ? leave_slot(slot, slot_bytes_) : unmap_slot(slot, slot_bytes_);
}

void SlotPool::retire() noexcept {
  std::vector<uint8_t*> freed;
  {
    const std::lock_guard lock(mutex_);
    keep_ = 0;
    retired_ = true;
    freed.swap(free_);
    slots_ -= freed.size();
  }
  for (uint8_t* slot : freed) leave_slot(slot, slot_bytes_);
}

size_t SlotPool::slots() const {
  const std::lock_guard lock(mutex_);
  return slots_;
}

}  // namespace headrace
