// The memory of batches: slots that are reused, since page faults of fresh memory cost up to a quarter of the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/fork_guard.h"

namespace headrace {

/// Shared ownership of a slot. The slot returns to the pool when the last copy is destroyed, in any thread, even after
/// the pool's owner is gone.
using Lease = std::shared_ptr<uint8_t>;

/// Leases slots of one size. The number of leases is unlimited: if all slots are leased, it maps a new one. Slots that
/// return beyond `keep` free ones are unmapped.
class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  /// `slot_bytes`: size of a slot; `keep`: most free slots that stay mapped.
  static std::shared_ptr<SlotPool> make(size_t slot_bytes, size_t keep);
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  /// A slot, 4096-byte aligned, with unspecified contents; `is_new`: whether it is newly mapped. Never blocks.
  /// Any thread. Throws std::bad_alloc.
  Lease acquire(bool* is_new = nullptr);

  /// Leaves the free slots, and each slot that returns after this call, to other pools (leave_slot). Any thread.
  void retire() noexcept;

  /// Size of a slot.
  size_t slot_bytes() const { return slot_bytes_; }
  /// Slots that exist now, free or leased. Any thread.
  size_t slots() const;

 private:
  SlotPool(size_t slot_bytes, size_t keep) : slot_bytes_(slot_bytes), keep_(keep) {}
  void give_back(uint8_t* slot) noexcept;

  const size_t slot_bytes_;
  const ForkGuard fork_;
  mutable std::mutex mutex_;
  std::vector<uint8_t*> free_;  // guarded by mutex_, as are keep_ and slots_
  size_t keep_;
  size_t slots_ = 0;
  bool retired_ = false;  // guarded by mutex_
};

}  // namespace headrace
