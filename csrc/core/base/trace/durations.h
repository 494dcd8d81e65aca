// Counts durations in buckets whose width grows with the duration, for percentiles without storing each value.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

/// Four buckets per octave: the bounds of a bucket are at most 25 % apart. The last bucket begins at 7 * 2^36 ns (8
/// min).
inline constexpr int kDurationBuckets = 152;

/// The bucket of a duration. Negative ones are in the first.
constexpr size_t duration_bucket(int64_t ns) {
  if (ns < 8) return ns < 0 ? 0 : static_cast<size_t>(ns);
  const int octave = std::bit_width(static_cast<uint64_t>(ns)) - 3;  // 8 ns: 1
  const auto bucket = static_cast<size_t>(4 * octave + static_cast<int>((ns >> octave) & 3) + 4);
  return bucket < kDurationBuckets ? bucket : kDurationBuckets - 1;
}

/// The least duration of a bucket, in ns.
constexpr int64_t duration_bound(size_t bucket) {
  if (bucket < 8) return static_cast<int64_t>(bucket);
  return static_cast<int64_t>(4 + bucket % 4) << (bucket / 4 - 1);
}

/// Written by one thread, read by any.
class Durations {
 public:
  void add(int64_t ns) {
    auto& count = counts_[duration_bucket(ns)];
    // One writer: a load and a store are enough, and cheaper than a locked add.
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// As add(), for several writers.
  void add_shared(int64_t ns) { counts_[duration_bucket(ns)].fetch_add(1, std::memory_order_relaxed); }

  int64_t count(size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<int64_t>, kDurationBuckets> counts_{};
};

/// Adds the counts of all buckets to `sums`, which is empty or has one for each.
inline void add_counts(const Durations& durations, std::vector<int64_t>& sums) {
  sums.resize(kDurationBuckets);
  for (size_t i = 0; i < kDurationBuckets; ++i) sums[i] += durations.count(i);
}

}  // namespace headrace
