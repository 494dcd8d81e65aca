// One batch in flight: where its samples come from, where they go, and how many are still to be made.
#pragma once

#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/batch/slot_ring.h"
#include "core/source/blob.h"

namespace headrace {

/// A sample that could not be made, for the consumer to raise, skip or replace.
struct Failure {
  int sample = 0;  // its number in the batch
  Stage stage{};
  int os_errno = 0;
  std::string reason;
};

/// Filled by many workers, each writing its own samples; read by the consumer once it is `ready`. A backend may keep
/// more with it, in a class of its own.
struct Batch {
  virtual ~Batch() = default;

  std::shared_ptr<const BlobTable> blobs;
  std::vector<int64_t> rows;  // of the blob table, one a sample
  std::vector<double> draws;  // [rows][recipe.draws]
  Lease slot;                 // keeps `memory` alive; empty where the caller brought the memory
  uint8_t* memory = nullptr;

  std::vector<int> places;      // where in `memory` each sample goes; empty: sample i at place i
  std::atomic<int> claimed{0};  // samples that a worker has taken
  std::atomic<int> remaining{0};
  std::atomic<bool> ready{false};  // the consumer may have it
  std::atomic<int> writers{0};     // threads that may be writing into `memory` now
  std::atomic<bool> cancelled{false};
  const uint64_t id = next_id();  // unlike the address, never used again

  /// Of a new batch: what is to be made. Throws std::invalid_argument, std::out_of_range; then nothing is changed.
  void fill(std::shared_ptr<const BlobTable> from, std::vector<int64_t> its_rows, std::vector<double> its_draws,
            int draws_each);

  int size() const { return static_cast<int>(rows.size()); }

  int place(int sample) const { return places.empty() ? sample : places[static_cast<size_t>(sample)]; }

  /// The next sample to make, or -1. Any thread.
  int claim() {
    if (claimed.load(std::memory_order_relaxed) >= size() || cancelled.load(std::memory_order_relaxed)) return -1;
    const int sample = claimed.fetch_add(1, std::memory_order_relaxed);
    return sample < size() ? sample : -1;
  }

  /// Before a sample is written; false: cancelled, nothing may be written any more. Any thread.
  bool begin_writing() {
    writers.fetch_add(1);  // before the look at `cancelled`: whoever cancels looks at both the other way round
    if (!cancelled.load()) return true;
    writers.fetch_sub(1);
    return false;
  }

  /// Calls `body` and notes what it throws as the failure of a sample, by default in that stage; whether it threw
  /// nothing. Any thread.
  template <typename Body>
  bool attempt(int sample, Stage stage, Body body) {
    try {
      body();
      return true;
    } catch (const Error& error) {
      fail({sample, error.stage(), error.os_errno(), error.what()});
    } catch (const std::bad_alloc&) {
      fail({sample, stage, ENOMEM, "not enough memory"});
    } catch (const std::exception& error) {
      fail({sample, stage, 0, error.what()});
    }
    return false;
  }
  /// Any thread.
  void fail(Failure failure) {
    const std::lock_guard lock(mutex_);
    failures_.push_back(std::move(failure));
  }
  /// The whole batch cannot be made; the first reason counts. Any thread.
  void break_down(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (broken_.empty()) broken_ = reason;
  }
  /// Why the whole batch cannot be made; empty where it can. Any thread.
  std::string broken() const {
    const std::lock_guard lock(mutex_);
    return broken_;
  }
  /// Empties the list. Any thread.
  std::vector<Failure> take_failures() {
    const std::lock_guard lock(mutex_);
    return std::exchange(failures_, {});
  }

 private:
  static uint64_t next_id() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  mutable std::mutex mutex_;
  std::vector<Failure> failures_;  // guarded by mutex_, as is broken_
  std::string broken_;
};

}  // namespace headrace
