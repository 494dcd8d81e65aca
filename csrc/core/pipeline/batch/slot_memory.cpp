// Maps slots with mmap, and keeps those that pools leave in a list of fixed size, so that leaving one cannot fail.
#include "core/pipeline/batch/slot_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>

#include "core/base/platform/pages.h"

namespace headrace {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMostLeft = size_t{1} << 30;

size_t mapped_bytes(size_t bytes) {
  const size_t grain = bytes >= kHugePage ? kHugePage : kPage;
  return std::max(grain, (bytes + grain - 1) / grain * grain);
}

struct Mapping {
  uint8_t* memory;
  size_t bytes;
};

/// The slots that pools have left in this process, oldest first.
struct Left {
  const ForkGuard fork;
  std::mutex mutex;
  // Guarded by mutex:
  std::array<Mapping, 16> slots{};
  size_t count = 0;
  size_t bytes = 0;
  int keepers = 0;

  Mapping remove(size_t number) noexcept {
    const Mapping slot = slots[number];
    std::copy(slots.begin() + number + 1, slots.begin() + count, slots.begin() + number);
    --count;
    bytes -= slot.bytes;
    return slot;
  }
  void drop(size_t number) noexcept {
    const Mapping slot = remove(number);
    ::munmap(slot.memory, slot.bytes);
  }
};

/// In a forked child a new list: a thread that does not exist there may hold the lock of the old one. The old one's
/// memory is the child's own copy, and stays mapped.
Left& left() {
  static std::atomic<Left*> newest{new Left};
  Left* current = newest.load(std::memory_order_acquire);
  while (current->fork.forked()) {
    auto* const fresh = new Left;
    if (newest.compare_exchange_strong(current, fresh)) return *fresh;
    delete fresh;
  }
  return *current;
}

}  // namespace

uint8_t* take_slot(size_t bytes, bool* is_new) {
  if (is_new != nullptr) *is_new = false;
  if (bytes > std::numeric_limits<ptrdiff_t>::max() - kHugePage) throw std::bad_alloc();  // mapped_bytes would overflow
  const size_t mapped = mapped_bytes(bytes);
  {
    Left& kept = left();
    const std::lock_guard lock(kept.mutex);
    for (size_t i = kept.count; i-- > 0;) {  // newest first: their pages are the least likely to be reclaimed
      if (kept.slots[i].bytes == mapped) return kept.remove(i).memory;
    }
  }
  void* memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (bytes >= kHugePage) prefer_huge_pages(memory, mapped);
  if (is_new != nullptr) *is_new = true;
  return static_cast<uint8_t*>(memory);
}

void unmap_slot(uint8_t* slot, size_t bytes) noexcept { ::munmap(slot, mapped_bytes(bytes)); }

void leave_slot(uint8_t* slot, size_t bytes) noexcept {
  const Mapping mapping{slot, mapped_bytes(bytes)};
  Left& kept = left();  // take_slot() has made the list: no memory is needed
  const std::lock_guard lock(kept.mutex);
  if (kept.keepers == 0 || mapping.bytes > kMostLeft) return unmap_slot(slot, bytes);
  // The system reclaims the pages when it needs them, unless they are written to before. Where it cannot, no slots are
  // kept.
  if (!let_pages_go(slot, mapping.bytes)) return unmap_slot(slot, bytes);
  while (kept.count == kept.slots.size() || kept.bytes + mapping.bytes > kMostLeft) kept.drop(0);
  kept.slots[kept.count++] = mapping;
  kept.bytes += mapping.bytes;
}

size_t left_slot_bytes() {
  Left& kept = left();
  const std::lock_guard lock(kept.mutex);
  return kept.bytes;
}

SlotKeeper::SlotKeeper() {
  Left& kept = left();
  const std::lock_guard lock(kept.mutex);
  ++kept.keepers;
}

SlotKeeper::~SlotKeeper() {
  if (fork_.forked()) return;
  Left& kept = left();
  const std::lock_guard lock(kept.mutex);
  if (--kept.keepers > 0) return;
  while (kept.count > 0) kept.drop(0);
}

}  // namespace headrace
