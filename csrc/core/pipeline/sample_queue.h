// Feeds workers sample by sample, in batch order; a worker goes to the lock once a batch, not once a sample.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "core/batch/batch.h"

namespace headrace {

class SampleQueue {
 public:
  struct Task {
    std::shared_ptr<Batch> batch;
    int sample = -1;
  };

  /// Any thread.
  void push(std::shared_ptr<Batch> batch) {
    {
      const std::lock_guard lock(mutex_);
      batches_.push_back(std::move(batch));
    }
    changed_.notify_all();
  }

  /// Ahead of everything else: samples of a batch that the consumer already waits for. Any thread.
  void push_front(std::shared_ptr<Batch> batch) {
    {
      const std::lock_guard lock(mutex_);
      batches_.push_front(std::move(batch));
    }
    changed_.notify_all();
  }

  /// The next sample, from the task's own batch while that has one. Blocks while there is none, unless `other_work()`:
  /// then the task has no batch. False after close(). Any thread.
  template <class OtherWork>
  bool pop(Task& task, OtherWork other_work) {
    return advance(task, true, other_work);
  }
  bool pop(Task& task) {
    return pop(task, [] { return false; });
  }
  /// The same, but false at once when there is none.
  bool try_pop(Task& task) {
    return advance(task, false, [] { return false; });
  }

  /// There is a piece of other work more: wakes one waiter for it. Any thread.
  void wake() {
    {
      const std::lock_guard lock(mutex_);  // so that a waiter is before its check or asleep, never between
    }
    changed_.notify_one();
  }

  /// Wakes everybody; what is queued is dropped, and so is the rest of batches in work. Any thread.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_.store(true, std::memory_order_relaxed);
      batches_.clear();
    }
    changed_.notify_all();
  }

 private:
  bool closed() const { return closed_.load(std::memory_order_relaxed); }

  template <class OtherWork>
  bool advance(Task& task, bool block, OtherWork other_work) {
    for (;;) {
      if (task.batch != nullptr && !closed() && (task.sample = task.batch->claim()) >= 0) return true;
      std::unique_lock lock(mutex_);
      if (!batches_.empty() && batches_.front() == task.batch) batches_.pop_front();  // found exhausted just now
      task.batch = nullptr;
      if (block) changed_.wait(lock, [&] { return closed() || !batches_.empty() || other_work(); });
      if (closed()) return false;
      if (batches_.empty()) return block;
      task.batch = batches_.front();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Batch>> batches_;  // guarded by mutex_
  std::atomic<bool> closed_{false};             // set under mutex_
};

}  // namespace headrace
