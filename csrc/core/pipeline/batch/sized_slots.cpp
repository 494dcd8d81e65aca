// Keeps a pool of slots for each class of sizes: two classes between a power of two and the next one.
#include "core/pipeline/batch/sized_slots.h"

#include <algorithm>
#include <bit>

namespace headrace {
namespace {

constexpr size_t kKeptBytes = size_t{64} << 20;  // most bytes of free slots that a class keeps, or one slot
constexpr size_t kMostKept = 16;

// Pages of a slot that are never written to take no memory, so coarse classes cost only addresses.
size_t class_of(size_t bytes) {
  if (bytes > size_t{1} << 62) throw std::bad_alloc();
  const size_t above = std::bit_ceil(std::max(bytes, size_t{4096}));
  const size_t between = above / 4 * 3;
  return bytes <= between ? between : above;
}

}  // namespace

Lease SizedSlots::acquire(size_t bytes) {
  const size_t slot_bytes = class_of(bytes);
  std::shared_ptr<SlotPool> pool;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<SlotPool>& known = pools_[slot_bytes];
    if (known == nullptr) {
      const size_t keep = retired_ ? 0 : std::clamp(kKeptBytes / slot_bytes, size_t{1}, kMostKept);
      known = SlotPool::make(slot_bytes, keep);
    }
    pool = known;
  }
  return pool->acquire();
}

void SizedSlots::retire() noexcept {
  const std::lock_guard lock(mutex_);
  retired_ = true;
  for (const auto& [bytes, pool] : pools_) pool->retire();
}

size_t SizedSlots::count() const {
  const std::lock_guard lock(mutex_);
  size_t slots = 0;
  for (const auto& [bytes, pool] : pools_) slots += pool->slots();
  return slots;
}

}  // namespace headrace
