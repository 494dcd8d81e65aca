// The place where a lease lies until a thread takes it.
#pragma once

#include <mutex>
#include <utility>

#include "core/pipeline/batch/slot_ring.h"

namespace headrace {

/// Holds a lease that is handed out once: of several threads that call take(), one gets it. Any thread may call any
/// method.
class LeaseSlot {
 public:
  LeaseSlot() = default;
  LeaseSlot(const LeaseSlot&) = delete;
  LeaseSlot& operator=(const LeaseSlot&) = delete;

  /// Replaces the lease.
  void put(Lease lease) {
    const std::lock_guard lock(mutex_);
    lease_.swap(lease);  // the one before is freed without the lock
  }
  /// The lease, which is no longer here afterwards; null: there was none.
  Lease take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lease_, nullptr);
  }
  /// Another owner of the same slot; null: there is no lease.
  Lease share() const {
    const std::lock_guard lock(mutex_);
    return lease_;
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return lease_ == nullptr;
  }

 private:
  mutable std::mutex mutex_;
  Lease lease_;  // guarded by mutex_
};

}  // namespace headrace
