// A pool of objects that are expensive to make and that one thread at a time uses.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace headrace {

template <class T>
class Pool {
 public:
  /// An unused object, or a new one from make(). Any thread.
  template <class Make>
  std::unique_ptr<T> take(Make make) {
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        auto one = std::move(spare_.back());
        spare_.pop_back();
        return one;
      }
    }
    return make();
  }
  /// Returns an object to the pool. Any thread.
  void give(std::unique_ptr<T> one) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(one));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> spare_;  // guarded by mutex_
};

}  // namespace headrace
