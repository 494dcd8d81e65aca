// Feeds workers sample by sample, in batch order. A worker takes the lock once a batch, not once a sample.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "core/batch/batch.h"

namespace headrace {

/// Any thread may call any method.
class SampleQueue {
 public:
  /// What a worker works on. It keeps its batch from call to call, so that most calls need no lock.
  struct Task {
    std::shared_ptr<Batch> batch;
    int sample = -1;
  };

  /// Appends the samples of a batch.
  void push(std::shared_ptr<Batch> batch) {
    {
      const std::lock_guard lock(mutex_);
      batches_.push_back(std::move(batch));
    }
    changed_.notify_all();
  }

  /// Puts a batch ahead of all others: the consumer already waits for it.
  void push_front(std::shared_ptr<Batch> batch) {
    {
      const std::lock_guard lock(mutex_);
      batches_.push_front(std::move(batch));
    }
    changed_.notify_all();
  }

  /// Sets the task to the next sample, of its own batch while that has one. Blocks while there is none; where
  /// `other_work()` is true then, returns with a task that has no batch. False after close(). `other_work` is called
  /// under the queue's lock.
  template <class OtherWork>
  bool pop(Task& task, OtherWork other_work) {
    return advance(task, true, other_work);
  }
  bool pop(Task& task) {
    return pop(task, [] { return false; });
  }
  /// Never blocks: false where there is no sample.
  bool try_pop(Task& task) {
    return advance(task, false, [] { return false; });
  }

  /// Wakes one waiting thread: `other_work()` has become true.
  void wake() {
    {
      // A waiting thread is now either before its check or asleep: the notification cannot fall between the two.
      const std::lock_guard lock(mutex_);
    }
    changed_.notify_one();
  }

  /// Drops queued batches and the samples not begun, and wakes all waiting threads.
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
      if (!batches_.empty() && batches_.front() == task.batch) batches_.pop_front();  // claim() found it exhausted
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
