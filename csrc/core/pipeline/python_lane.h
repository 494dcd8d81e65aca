// Holds the samples that Python has to go on with, until one of its threads takes them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/geometry.h"
#include "core/batch/batch.h"

namespace headrace {

struct PythonJob {
  std::shared_ptr<Batch> batch;
  int sample = 0;
  std::vector<uint8_t> bytes{};  // to decode: the file as read, so that Pillow judges what the native stages saw
  std::string reason{};          // why the native decoder did not take it
  size_t from = 0;               // the recipe's step to go on with
  int call = -1;                 // which of the recipe's calls is to be made; -1: Pillow decodes
  Size size{};                   // for a call: `bytes` are an image of this size, RGBX
  std::string path{};            // of a file to decode that was not read whole; else empty
};

class PythonLane {
 public:
  /// After close() the job is dropped. Any thread.
  void push(PythonJob job) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
  }

  /// Puts back a job that was popped and not finished: it is the next one. After close() it is dropped. Any thread.
  void put_back(PythonJob job) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      jobs_.push_front(std::move(job));
    }
    changed_.notify_one();
  }

  /// Blocks up to `patience`; nullopt when nothing came or after close(). Passes over jobs of cancelled batches. Any
  /// thread.
  std::optional<PythonJob> pop(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      PythonJob job;  // one of a cancelled batch is dropped without the lock: its memory may be returned by it
      std::unique_lock lock(mutex_);
      // Without patience no wait at all: even one that ends at once costs as much as a hundred small images.
      if (patience.count() > 0) changed_.wait_until(lock, deadline, [&] { return closed_ || !jobs_.empty(); });
      if (closed_ || jobs_.empty()) return std::nullopt;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      if (!job.batch->cancelled.load(std::memory_order_relaxed)) return job;
    }
  }

  size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
  }

  /// Wakes everybody; waiting jobs are dropped. Any thread.
  void close() {
    std::deque<PythonJob> dropped;  // without the lock
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      dropped.swap(jobs_);
    }
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PythonJob> jobs_;  // guarded by mutex_, as is closed_
  bool closed_ = false;
};

}  // namespace headrace
