// Hands out samples to workers one by one, in batch order. A worker takes the lock once per batch, not once per sample.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "core/pipeline/batch/batch.h"

namespace headrace {

/// Any thread may call any method.
class SampleQueue {
 public:
  /// A worker's current sample. It keeps its batch between calls, so that most calls need no lock.
  struct Task {
    std::shared_ptr<Batch> batch;
    int sample = -1;
    bool returned = false;  // by a helper: its batch may be due later than others
  };
  /// Samples of one batch that a helper makes.
  struct Run {
    std::shared_ptr<Batch> batch;
    SampleRun samples;
  };

  /// Appends the samples of a batch.
  void push(std::shared_ptr<Batch> batch) {
    {
      const std::lock_guard lock(mutex_);
      batches_.push_back(std::move(batch));
    }
    changed_.notify_all();
    grown_.notify_all();
  }

  /// Puts a batch before all others: the consumer already waits for it.
  void push_front(std::shared_ptr<Batch> batch) {
    {
      const std::lock_guard lock(mutex_);
      batches_.push_front(std::move(batch));
    }
    changed_.notify_all();
  }

  /// Sets the task to the next sample, of its own batch while that has one. Blocks while there is none, except if
  /// `other_work()` is true or the worker with number `worker` is not wanted any more: then it returns a task without a
  /// batch. False after close(). `other_work` is called under the queue's lock.
  template <class OtherWork>
  bool pop(Task& task, OtherWork other_work, int worker = 0) {
    return advance(task, true, worker, other_work);
  }
  bool pop(Task& task) {
    return pop(task, [] { return false; });
  }
  /// Sets the workers that are wanted: those with numbers below `count`, 1 or more. Initially all are.
  void want(int count) {
    {
      const std::lock_guard lock(mutex_);
      wanted_.store(count, std::memory_order_relaxed);
    }
    changed_.notify_all();  // those that are not wanted any more continue to stand_by()
    wanted_again_.notify_all();
  }
  /// Called by a worker between two samples: releases its batch and blocks while the worker is not wanted. False after
  /// close(). After a pop() without a batch the worker must first do other work, if there is any: wake() may have been
  /// for it.
  bool stand_by(Task& task, int worker) {
    if (wanted(worker)) return true;
    task.batch = nullptr;
    std::unique_lock lock(mutex_);
    wanted_again_.wait(lock, [&] { return closed() || wanted(worker); });
    return !closed();
  }
  /// Takes up to `most` samples from the end of the batch that is due last, if more than `keep` are queued: what is
  /// left is for the workers. Waits up to `patience`; a run without a batch: fewer are queued.
  Run take_last(int most, int keep, std::chrono::milliseconds patience) {
    Run found;
    std::unique_lock lock(mutex_);
    grown_.wait_for(lock, patience, [&] { return closed() || (found = last_run(most, keep)).batch != nullptr; });
    return found;
  }
  /// Returns samples that take_last() took: workers take them before all others.
  void give_back(Run run) {
    if (run.samples.count == 0) return;
    {
      const std::lock_guard lock(mutex_);
      if (closed()) return;
      returned_.push_back(std::move(run));
      has_returned_.store(true, std::memory_order_relaxed);
    }
    changed_.notify_all();
  }
  /// Never blocks: false where there is no sample.
  bool try_pop(Task& task) {
    return advance(task, false, 0, [] { return false; });
  }

  /// The sample that comes `distance` samples after the task's; a task without a batch if fewer are queued.
  Task after(const Task& task, int distance) {
    int sample = task.sample + distance;
    if (sample < task.batch->size()) return {task.batch, sample};
    sample -= task.batch->size();
    const std::lock_guard lock(mutex_);
    for (const auto& batch : batches_) {
      if (batch == task.batch) continue;
      if (sample < batch->size()) return {batch, sample};
      sample -= batch->size();
    }
    return {};
  }

  /// Wakes one waiting thread. Call when `other_work()` has become true.
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
      returned_.clear();
    }
    changed_.notify_all();
    wanted_again_.notify_all();
    grown_.notify_all();
  }

 private:
  bool wanted(int worker) const { return worker < wanted_.load(std::memory_order_relaxed); }
  bool closed() const { return closed_.load(std::memory_order_relaxed); }

  template <class OtherWork>
  bool advance(Task& task, bool block, int worker, OtherWork other_work) {
    for (;;) {
      if (std::exchange(task.returned, false)) task.batch = nullptr;
      if (task.batch != nullptr && !closed() && !has_returned_.load(std::memory_order_relaxed) &&
          (task.sample = task.batch->claim()) >= 0) {
        return true;
      }
      std::unique_lock lock(mutex_);
      if (!closed() && wanted(worker) && take_returned(task)) return true;
      if (!batches_.empty() && batches_.front() == task.batch && task.batch->is_claimed()) batches_.pop_front();
      task.batch = nullptr;
      const auto leaves = [&] { return !wanted(worker) || other_work(); };
      if (block) {
        changed_.wait(lock, [&] { return closed() || !batches_.empty() || !returned_.empty() || leaves(); });
      }
      if (closed()) return false;
      // A batch may have arrived between want() and this thread's wake-up: it belongs to the workers that are wanted.
      if (!wanted(worker) || (batches_.empty() && returned_.empty())) return block;
      if (!batches_.empty()) task.batch = batches_.front();
    }
  }

  /// Sets the task to a sample that was given back, of a batch that is not cancelled. Under the lock.
  bool take_returned(Task& task) {
    while (!returned_.empty()) {
      Run& run = returned_.front();
      const bool wanted = !run.batch->cancelled.load(std::memory_order_relaxed);
      task = {run.batch, run.samples.first++, true};
      if (--run.samples.count == 0 || !wanted) returned_.pop_front();
      has_returned_.store(!returned_.empty(), std::memory_order_relaxed);
      if (wanted) return true;
      task = {};
    }
    return false;
  }

  /// See take_last(). Under the lock.
  Run last_run(int most, int keep) {
    int spare = -keep;
    for (const auto& batch : batches_) spare += batch->unclaimed.left();
    for (auto one = batches_.rbegin(); one != batches_.rend() && spare > 0; ++one) {
      if ((*one)->cancelled.load(std::memory_order_relaxed)) continue;
      const SampleRun samples = (*one)->unclaimed.take_last(std::min(most, spare));
      if (samples.count > 0) return {*one, samples};
    }
    return {};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable wanted_again_;        // separate from changed_: wake() must reach a worker that is wanted
  std::condition_variable grown_;               // there are more samples, which helpers may take
  std::deque<std::shared_ptr<Batch>> batches_;  // guarded by mutex_
  std::deque<Run> returned_;                    // guarded by mutex_
  std::atomic<bool> has_returned_{false};       // set under mutex_
  std::atomic<bool> closed_{false};             // set under mutex_
  std::atomic<int> wanted_{std::numeric_limits<int>::max()};  // set under mutex_
};

}  // namespace headrace
