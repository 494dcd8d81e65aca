// Holds the samples that Pillow has to judge, until a Python thread takes them.
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

#include "batch.h"

namespace headrace {

struct PillowJob {
  std::shared_ptr<Batch> batch;
  int sample = 0;
  std::vector<uint8_t> bytes;  // as read, so that Pillow judges what the native stages saw
  std::string reason;          // why the native decoder did not take it
};

class PillowLane {
 public:
  /// Any thread.
  void push(PillowJob job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
  }

  /// Blocks up to `patience`; nullopt when nothing came or after close(). Any thread.
  std::optional<PillowJob> pop(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return closed_ || !jobs_.empty(); });
    if (closed_ || jobs_.empty()) return std::nullopt;
    PillowJob job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }

  size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return jobs_.size();
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      jobs_.clear();
    }
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PillowJob> jobs_;  // guarded by mutex_, as is closed_
  bool closed_ = false;
};

}  // namespace headrace
