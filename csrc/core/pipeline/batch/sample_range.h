// The samples of a batch that nobody has taken: workers take them from the front, helpers from the back.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace headrace {

/// Adjacent samples of a batch.
struct SampleRun {
  int first = 0;
  int count = 0;
};

/// Both ends are in one word, so that each sample is taken once. Any thread may call any method.
class SampleRange {
 public:
  /// Sets the range to samples 0 to `count` - 1. Before the batch is queued.
  void reset(int count) { ends_.store(uint64_t{static_cast<uint32_t>(count)} << kEnd, std::memory_order_relaxed); }

  /// Takes the first sample; -1: there is none.
  int take_first() {
    if (left() == 0) return -1;
    const uint64_t before = ends_.fetch_add(1, std::memory_order_relaxed);
    return begin_of(before) < end_of(before) ? begin_of(before) : -1;
  }

  /// Takes the last samples, up to `most`; none: count 0.
  SampleRun take_last(int most) {
    uint64_t before = ends_.load(std::memory_order_relaxed);
    for (;;) {
      const int count = std::min(most, end_of(before) - begin_of(before));
      if (count <= 0) return {};
      const uint64_t after = before - (uint64_t{static_cast<uint32_t>(count)} << kEnd);
      if (ends_.compare_exchange_weak(before, after, std::memory_order_relaxed)) return {end_of(after), count};
    }
  }

  /// Number of samples in it.
  int left() const {
    const uint64_t now = ends_.load(std::memory_order_relaxed);
    return std::max(0, end_of(now) - begin_of(now));
  }

 private:
  static constexpr int kEnd = 32;
  // The begin may pass the end by one for each thread that calls take_first() at the same time.
  static int begin_of(uint64_t ends) { return static_cast<int>(static_cast<uint32_t>(ends)); }
  static int end_of(uint64_t ends) { return static_cast<int>(static_cast<uint32_t>(ends >> kEnd)); }

  std::atomic<uint64_t> ends_{0};
};

}  // namespace headrace
