// One batch in flight: the rows its samples come from, the memory they go to, and how many are not done.
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
#include "core/base/geometry.h"
#include "core/io/source/blob.h"
#include "core/jpeg/scan/entry_points.h"
#include "core/pipeline/batch/lease_holder.h"
#include "core/pipeline/batch/sample_range.h"
#include "core/plan/plan.h"

namespace headrace {

/// A sample that could not be made. The consumer raises it, skips it or replaces the sample.
struct Failure {
  int sample = 0;  // its index in the batch
  Stage stage{};
  int os_errno = 0;  // 0: no system call failed
  std::string reason;
};

/// The reason of a failure for lack of memory. Short enough for a string to hold it without an allocation.
inline constexpr const char* kNoMemory = "out of memory";

/// A finished sample in memory of its own, where samples have different sizes.
struct SizedSample {
  LeaseHolder memory;  // empty: not made, or handed out
  Size size;
};

/// A plan that was resolved elsewhere, and the size of the image that it is for.
struct GivenPlan {
  Plan plan;
  Size image;
};

/// Many workers fill a batch at once, each its own samples; the consumer reads it once it is `ready`. A device derives
/// from this to keep its own data with a batch.
struct Batch {
  virtual ~Batch() = default;

  std::shared_ptr<const BlobTable> blobs;
  std::shared_ptr<EntryPoints> entry_points;  // of the JPEGs in `blobs`; null: none
  std::vector<int64_t> rows;                  // of the blob table, one per sample
  std::vector<double> draws;                  // [rows][recipe.draws]
  std::vector<GivenPlan> plans;               // one per sample, or per sample and view, instead of those of the recipe;
                                              // empty: none were given
  std::vector<Size> sizes;  // of the samples' images before any step, for images that were opened; else {0, 0}
  LeaseHolder slot;         // owns `memory`; empty if the caller passed the memory, or it was handed out
  uint8_t* memory = nullptr;
  std::vector<uint8_t*> views;                      // memory of each view, where it is not all in `memory`
  bool is_new_memory = false;                       // newly mapped: no page of it is in place
  std::shared_ptr<std::vector<SizedSample>> sized;  // instead of `memory`, where samples have different sizes

  std::vector<int> places;         // position of each sample in `memory`; empty: sample i at position i
  int room = 0;                    // samples that `memory` holds; in a repair, those of the batch that it repairs
  SampleRange unclaimed;           // samples that nobody has taken
  std::atomic<int> remaining{0};   // samples that are neither made nor failed yet
  std::atomic<bool> ready{false};  // the consumer may take it
  std::atomic<int> writers{0};     // threads that may be writing to `memory` now
  std::atomic<bool> cancelled{false};
  const uint64_t id = next_id();  // unique in the process, unlike the address

  /// Sets what a new batch is made from: rows of `from`, and `draws_each` draws per row. Throws std::invalid_argument
  /// for a wrong number of draws, std::out_of_range for a row that `from` lacks; then nothing is changed.
  void fill(std::shared_ptr<const BlobTable> from, std::vector<int64_t> its_rows, std::vector<double> its_draws,
            int draws_each);

  int size() const { return static_cast<int>(rows.size()); }

  /// The plan of a sample: the one given with the batch, or what the recipe's steps from `from` on make of its draws.
  /// `number`: of the sample, or of its view, counted through all samples. Throws Error(kPlan) if a step, or the given
  /// plan, cannot be applied to an image of this size.
  Plan plan_of(int number, const Recipe& recipe, const double* its_draws, Size image, size_t from = 0) const;

  /// Position of a sample in `memory`, counted in samples.
  int place(int sample) const { return places.empty() ? sample : places[static_cast<size_t>(sample)]; }

  /// The next sample to make, or -1. Any thread.
  int claim() { return cancelled.load(std::memory_order_relaxed) ? -1 : unclaimed.take_first(); }

  /// Whether claim() will return no further sample. Any thread.
  bool is_claimed() const { return cancelled.load(std::memory_order_relaxed) || unclaimed.left() == 0; }

  /// Registers the calling thread as a writer before it writes a sample. False: the batch is cancelled, and nothing may
  /// be written. Any thread.
  bool begin_writing() {
    // Increments, then loads `cancelled`; cancel() does the reverse. So either it sees this writer, or this sees the
    // cancel.
    writers.fetch_add(1);
    if (!cancelled.load()) return true;
    writers.fetch_sub(1);
    return false;
  }

  /// Calls `body`. Records an exception as the failure of the sample, in `stage` unless the exception names another;
  /// returns whether there was none. Any thread.
  template <typename Body>
  bool attempt(int sample, Stage stage, Body body) {
    try {
      body();
      return true;
    } catch (const Error& error) {
      fail(sample, error.stage(), error.os_errno(), error.what());
    } catch (const std::bad_alloc&) {
      fail(sample, stage, ENOMEM, kNoMemory);
    } catch (const std::exception& error) {
      fail(sample, stage, 0, error.what());
    }
    return false;
  }
  /// Records the failure of a sample, even if there is no memory for its reason. Any thread.
  void fail(int sample, Stage stage, int os_errno, const char* reason) noexcept;
  /// Records that the whole batch cannot be made. The first reason is kept. Any thread.
  void break_down(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (broken_.empty()) broken_ = reason;
  }
  /// Why the whole batch cannot be made; empty: it can. Any thread.
  std::string broken() const {
    const std::lock_guard lock(mutex_);
    return broken_;
  }
  /// Returns the failures recorded so far and clears them. Any thread.
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
