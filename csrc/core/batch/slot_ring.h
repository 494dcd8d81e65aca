// The memory of batches: slots that are used again, since touching fresh memory costs as much as a quarter of the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/fork_guard.h"

namespace headrace {

/// A slot in somebody's hands. It returns to the ring when the last copy dies, in any thread, even after the ring's
/// owner is gone.
using Lease = std::shared_ptr<uint8_t>;

/// Hands out slots of one size. Never blocks and never refuses: a user who keeps batches makes the ring take more
/// memory, and what comes back beyond `keep` free slots is given to the system. How many slots are in flight is up to
/// whoever asks.
class SlotRing : public std::enable_shared_from_this<SlotRing> {
 public:
  static std::shared_ptr<SlotRing> make(size_t slot_bytes, size_t keep);
  ~SlotRing();
  SlotRing(const SlotRing&) = delete;
  SlotRing& operator=(const SlotRing&) = delete;

  /// A slot, 4096-byte aligned; its contents are whatever was there before. Any thread. Throws std::bad_alloc.
  Lease acquire();

  /// Keeps no free slot from now on: what is free, and what comes back, is given to the system. Any thread.
  void retire() noexcept;

  size_t slot_bytes() const { return slot_bytes_; }
  /// Slots that exist now, free or leased. Any thread.
  size_t slots() const;

 private:
  SlotRing(size_t slot_bytes, size_t keep) : slot_bytes_(slot_bytes), keep_(keep) {}
  void give_back(uint8_t* slot) noexcept;

  const size_t slot_bytes_;
  const ForkGuard fork_;
  mutable std::mutex mutex_;
  std::vector<uint8_t*> free_;  // guarded by mutex_, as are keep_ and slots_
  size_t keep_;
  size_t slots_ = 0;
};

}  // namespace headrace
