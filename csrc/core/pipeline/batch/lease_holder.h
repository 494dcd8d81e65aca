// Holds a lease; take() hands it out once.
#pragma once

#include <mutex>
#include <utility>

#include "core/pipeline/batch/slot_pool.h"

namespace headrace {

/// Of several threads that call take(), one gets the lease. Any thread may call any method.
class LeaseHolder {
 public:
  LeaseHolder() = default;
  LeaseHolder(const LeaseHolder&) = delete;
  LeaseHolder& operator=(const LeaseHolder&) = delete;

  /// Replaces the lease.
  void put(Lease lease) {
    const std::lock_guard lock(mutex_);
    lease_.swap(lease);  // the previous one is freed without the lock
  }
  /// Removes and returns the lease; null: there was none.
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
