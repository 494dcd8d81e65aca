// Counts what each stage did: items and busy nanoseconds, one counter set a worker, added up when somebody asks.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace headrace {

enum class Clock : uint8_t { kRead, kHeader, kDecode, kResize, kIdle, kCount };
inline constexpr int kClocks = static_cast<int>(Clock::kCount);
inline constexpr std::array<const char*, kClocks> kClockNames = {"read", "header", "decode", "resize", "idle"};

inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// One worker's counters, alone on its cache lines. Written by that worker, read by any thread.
struct alignas(128) StageStats {
  std::array<std::atomic<int64_t>, kClocks> items{};
  std::array<std::atomic<int64_t>, kClocks> busy_ns{};

  void add(Clock clock, int64_t ns, int64_t count = 1) {
    const auto i = static_cast<size_t>(clock);
    // One writer: a load and a store are enough, and cheaper than a locked add.
    items[i].store(items[i].load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    busy_ns[i].store(busy_ns[i].load(std::memory_order_relaxed) + ns, std::memory_order_relaxed);
  }
};

}  // namespace headrace
