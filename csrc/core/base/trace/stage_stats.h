// Counters of each stage: items, busy nanoseconds and their distribution, one set per worker, summed on request. Also
// passes the times to a recorder.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/clock.h"
#include "core/base/trace/durations.h"
#include "core/base/trace/recorder.h"

namespace headrace {

/// kMemory: the first write to each page of new memory, in which the system finds the page and clears it.
enum class Clock : uint8_t { kRead, kHeader, kMemory, kDecode, kResize, kIdle, kCount };
inline constexpr int kClocks = static_cast<int>(Clock::kCount);
inline constexpr std::array<const char*, kClocks> kClockNames = {"read",   "header", "memory",
                                                                 "decode", "resize", "idle"};

/// One worker's counters, on cache lines of their own. Written by that worker, read by any thread.
struct alignas(128) StageStats {
  std::array<std::atomic<int64_t>, kClocks> items{};
  std::array<std::atomic<int64_t>, kClocks> busy_ns{};
  std::array<Durations, kClocks> durations;  // of the timed items
  std::atomic<int64_t> bytes{0};             // of the blobs that were read
  std::atomic<int64_t> idle_since{0};        // by now_ns(), while the worker waits for work; otherwise 0
  std::atomic<int64_t> thread{0};            // the worker's thread, as the operating system numbers it; 0: none yet
  Recorder* recorder = nullptr;              // null: no recording

  bool recording() const { return recorder != nullptr && recorder->recording(); }

  /// Counts one item and the time spent on it; times are those of now_ns().
  void add(Clock clock, int64_t begin_ns, int64_t end_ns) {
    count(clock, end_ns - begin_ns);
    durations[static_cast<size_t>(clock)].add(end_ns - begin_ns);
    if (recorder != nullptr) recorder->add(kClockNames[static_cast<size_t>(clock)], begin_ns, end_ns);
  }

  /// Counts one item of negligible time.
  void add(Clock clock) { count(clock, 0); }

  /// Call before the worker waits for work. The wait counts from now on, also while it lasts.
  void begin_idle() { idle_since.store(now_ns(), std::memory_order_release); }

  /// Call after begin_idle().
  void end_idle() {
    add(Clock::kIdle, idle_since.load(std::memory_order_relaxed), now_ns());
    idle_since.store(0, std::memory_order_release);
  }

  /// Nanoseconds of a stage so far. Any thread.
  int64_t busy(Clock clock) const {
    const auto i = static_cast<size_t>(clock);
    if (clock != Clock::kIdle) return busy_ns[i].load(std::memory_order_relaxed);
    for (;;) {  // again if a wait began or ended meanwhile, which would count twice or not at all
      const int64_t since = idle_since.load(std::memory_order_acquire);
      const int64_t ended = busy_ns[i].load(std::memory_order_acquire);
      if (idle_since.load(std::memory_order_acquire) != since) continue;
      return since == 0 ? ended : ended + now_ns() - since;
    }
  }

  /// Counts the bytes of a blob that was read.
  void add_bytes(size_t count) {
    bytes.store(bytes.load(std::memory_order_relaxed) + static_cast<int64_t>(count), std::memory_order_relaxed);
  }

 private:
  void count(Clock clock, int64_t ns) {
    const auto i = static_cast<size_t>(clock);
    // One writer: a load and a store are enough, and cheaper than a locked add.
    items[i].store(items[i].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    busy_ns[i].store(busy_ns[i].load(std::memory_order_relaxed) + ns, std::memory_order_relaxed);
  }
};

/// The time of a stage of one item, from the construction to end(), or to the destruction. Call end() before the item
/// is handed on to another thread: where that one finishes first, a recording may be over.
class StageTime {
 public:
  /// `timed`: false: nothing is counted.
  StageTime(StageStats& stats, Clock clock, bool timed)
      : stats_(timed ? &stats : nullptr), clock_(clock), begin_(timed ? now_ns() : 0) {}
  ~StageTime() { end(); }
  StageTime(const StageTime&) = delete;
  StageTime& operator=(const StageTime&) = delete;

  void end() {
    if (stats_ != nullptr) stats_->add(clock_, begin_, now_ns());
    stats_ = nullptr;
  }

 private:
  StageStats* stats_;
  const Clock clock_;
  const int64_t begin_;
};

}  // namespace headrace
