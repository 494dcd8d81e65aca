// A queue of samples that wait for one of Python's threads.
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
#include "core/pipeline/batch/batch.h"

namespace headrace {

/// Work for Python: a file to decode, or an image for a call.
struct PythonJob {
  std::shared_ptr<Batch> batch;
  int sample = 0;
  std::vector<uint8_t> bytes{};  // to decode: the file as it was read, so that Pillow sees the same bytes
  std::string reason{};          // why the native decoder refused it
  size_t from = 0;               // the recipe's next step
  int call = -1;                 // number of the call among the recipe's calls; -1: Pillow decodes
  Size size{};                   // for a call: `bytes` are an RGBX image of this size
  std::string path{};            // of a file that was not read as a whole; else empty
};

/// First in, first out. Any thread may call any method.
class PythonLane {
 public:
  /// Appends a job. After close() it is dropped.
  void push(PythonJob job) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
  }

  /// Returns a job that was popped and not finished to the front. After close() it is dropped.
  void put_back(PythonJob job) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      jobs_.push_front(std::move(job));
    }
    changed_.notify_one();
  }

  /// Removes the first job. Waits up to `patience`; nullopt: there was none, or the lane is closed. Drops jobs of
  /// cancelled batches.
  std::optional<PythonJob> pop(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      PythonJob job;  // destroyed without the lock: that may free a cancelled batch
      std::unique_lock lock(mutex_);
      // wait_until() with a deadline that has passed still costs as much as a hundred small images.
      if (patience.count() > 0) changed_.wait_until(lock, deadline, [&] { return closed_ || !jobs_.empty(); });
      if (closed_ || jobs_.empty()) return std::nullopt;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      if (!job.batch->cancelled.load(std::memory_order_relaxed)) return job;
    }
  }

  /// Number of queued jobs.
  size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
  }

  /// Drops queued jobs and wakes all waiting threads. Allocates nothing: destructors call it.
  void close() noexcept {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    for (;;) {
      PythonJob dropped;  // destroyed without the lock
      const std::lock_guard lock(mutex_);
      if (jobs_.empty()) return;
      dropped = std::move(jobs_.front());
      jobs_.pop_front();
    }
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PythonJob> jobs_;  // guarded by mutex_, as is closed_
  bool closed_ = false;
};

}  // namespace headrace
