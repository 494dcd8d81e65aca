// Maps slots with mmap, on huge pages where the system grants them.
#include "core/batch/slot_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <new>

namespace headrace {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

size_t mapped_bytes(size_t bytes) {
  const size_t grain = bytes >= kHugePage ? kHugePage : kPage;
  return std::max(grain, (bytes + grain - 1) / grain * grain);
}

uint8_t* map_slot(size_t bytes) {
  if (bytes > std::numeric_limits<ptrdiff_t>::max() - kHugePage) throw std::bad_alloc();  // mapped_bytes would overflow
  void* memory = ::mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // Advice only: without transparent huge pages the call fails, and small pages are used.
  if (bytes >= kHugePage) ::madvise(memory, mapped_bytes(bytes), MADV_HUGEPAGE);
  return static_cast<uint8_t*>(memory);
}

void unmap_slot(uint8_t* slot, size_t bytes) noexcept { ::munmap(slot, mapped_bytes(bytes)); }

}  // namespace

std::shared_ptr<SlotRing> SlotRing::make(size_t slot_bytes, size_t keep) {
  return std::shared_ptr<SlotRing>(new SlotRing(slot_bytes, keep));
}

SlotRing::~SlotRing() {
  if (fork_.forked()) return;  // the fork may have copied the list in the middle of a change
  for (uint8_t* slot : free_) unmap_slot(slot, slot_bytes_);
}

Lease SlotRing::acquire() {
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
    slot = map_slot(slot_bytes_);  // without the lock: other threads may take free slots meanwhile
    const std::lock_guard lock(mutex_);
    ++slots_;
  }
  return Lease(slot, [ring = shared_from_this()](uint8_t* memory) { ring->give_back(memory); });
}

void SlotRing::give_back(uint8_t* slot) noexcept {
  // In a forked child a thread that does not exist there may hold the lock. The memory is the child's own copy.
  if (fork_.forked()) return unmap_slot(slot, slot_bytes_);
  {
    const std::lock_guard lock(mutex_);
    if (free_.size() < keep_) {
      free_.push_back(slot);
      return;
    }
    --slots_;
  }
  unmap_slot(slot, slot_bytes_);
}

void SlotRing::retire() noexcept {
  std::vector<uint8_t*> freed;
  {
    const std::lock_guard lock(mutex_);
    keep_ = 0;
    freed.swap(free_);
    slots_ -= freed.size();
  }
  for (uint8_t* slot : freed) unmap_slot(slot, slot_bytes_);
}

size_t SlotRing::slots() const {
  const std::lock_guard lock(mutex_);
  return slots_;
}

}  // namespace headrace
