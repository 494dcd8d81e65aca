// A list without repetitions that several threads add to.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

namespace headrace {

/// Keeps one copy of each object that is added. `Same`: whether two are the same object. For Python objects, neither it
/// nor a copy may run Python code, which could wait for a thread that waits for this lock.
template <class T, class Same>
class Distinct {
 public:
  /// Any thread.
  void add(const T& one) {
    const std::lock_guard lock(mutex_);
    for (const T& known : kept_) {
      if (Same{}(known, one)) return;
    }
    kept_.push_back(one);
  }
  /// Moves all objects out. Any thread.
  std::vector<T> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(kept_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<T> kept_;  // guarded by mutex_
};

}  // namespace headrace
