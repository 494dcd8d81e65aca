// The clock of all counters and spans.
#pragma once

#include <chrono>
#include <cstdint>

namespace headrace {

/// Nanoseconds of the monotonic clock that Python's time.perf_counter_ns reads.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace headrace
