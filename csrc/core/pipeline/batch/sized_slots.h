// Memory of single samples whose sizes differ, reused between samples.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "core/pipeline/batch/slot_pool.h"

namespace headrace {

/// Any thread may call any method.
class SizedSlots {
 public:
  /// Memory of at least `bytes`, 4096-byte aligned, with unspecified contents. Throws std::bad_alloc.
  Lease acquire(size_t bytes);
  /// See SlotPool::retire.
  void retire() noexcept;
  /// See Backend::slots.
  size_t count() const;

 private:
  mutable std::mutex mutex_;
  std::map<size_t, std::shared_ptr<SlotPool>> pools_;  // by the size of their slots; guarded by mutex_, as is retired_
  bool retired_ = false;
};

}  // namespace headrace
