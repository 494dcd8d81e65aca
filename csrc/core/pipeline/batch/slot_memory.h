// Memory of slots: mapped from the system, or kept from pools that have ended. Each epoch makes a new pool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/fork_guard.h"

namespace headrace {

/// A slot of at least `bytes`, 4096-byte aligned, with unspecified contents: either kept by leave_slot() or newly
/// mapped, on huge pages where the system grants them; `is_new` tells which. Any thread. Throws std::bad_alloc.
uint8_t* take_slot(size_t bytes, bool* is_new = nullptr);

/// Returns a slot of take_slot(bytes) to the system. Any thread.
void unmap_slot(uint8_t* slot, size_t bytes) noexcept;

/// Keeps a slot of take_slot(bytes) for another pool while a SlotKeeper lives, up to 1 GiB and 16 slots in a process;
/// the oldest is returned to the system to make room. The system may reclaim the pages of a kept slot when memory is
/// short. Any thread.
void leave_slot(uint8_t* slot, size_t bytes) noexcept;

/// Bytes of the slots that are kept. Any thread.
size_t left_slot_bytes();

/// While one lives in this process, slots of pools that have ended are kept. Destroying the last one returns them to
/// the system. A copy made by a fork does nothing. Any thread.
class SlotKeeper {
 public:
  SlotKeeper();
  ~SlotKeeper();
  SlotKeeper(const SlotKeeper&) = delete;
  SlotKeeper& operator=(const SlotKeeper&) = delete;

 private:
  const ForkGuard fork_;
};

}  // namespace headrace
