// Detects whether samples are read from a disk, and if so asks the kernel for the bytes of later ones.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/io/source/blob.h"

namespace headrace {

/// One in 16 rows is watched: did its read make the thread wait? Such a row is never prepared, so that it shows what
/// the cache would do alone. After a wait the other rows are prepared, until four watched reads in a row find their
/// bytes in memory. Any thread.
class ReadAhead {
 public:
  /// How many samples before its read a row is prepared: a disk answers within the time of a few samples, a file
  /// server within that of more. The bytes of this number of samples take little room in the kernel's cache.
  static constexpr int kDistance = 32;
  /// Most bytes of a file that are requested.
  static constexpr uint64_t kMostBytes = uint64_t{16} << 20;

  static bool watched(int64_t row) { return static_cast<uint64_t>(row) * 0x9E3779B97F4A7C15u >> 60 == 0; }
  bool active() const { return credit_.load(std::memory_order_relaxed) > 0; }
  /// Whether the read of a watched row made its thread wait.
  void saw(bool waited) {
    if (waited) {
      credit_.store(kCredit, std::memory_order_relaxed);
    } else if (const int left = credit_.load(std::memory_order_relaxed); left > 0) {
      credit_.store(left - 1, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr int kCredit = 4;
  std::atomic<int> credit_{0};
};

/// Has the kernel read a blob's bytes from the disk in the background. Only regular files are opened. Errors are left
/// to the read.
void prepare(const Blob& blob) noexcept;

}  // namespace headrace
