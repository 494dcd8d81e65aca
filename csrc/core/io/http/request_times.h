// Times of recent requests, and when a request counts as late.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace headrace {

/// A late request takes longer than 95 % of the others, and longer than two of them in sequence: a second request, made
/// at that time, may be faster. One thread.
class RequestTimes {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  void add(int64_t ns) {
    recent_[count_++ % kRecent] = ns;
    if (count_ % kEnough == 0) limit_ns_ = std::max({kLeast, of_share(95), 2 * of_share(50)});
  }
  /// A request that takes this number of nanoseconds is late. kNever: too few times are known.
  int64_t limit_ns() const { return limit_ns_; }

 private:
  static constexpr size_t kRecent = 256, kEnough = 32;
  static constexpr int64_t kLeast = 20'000'000;  // a shorter one is never late

  /// The time within which `percent` percent of the recent requests ended.
  int64_t of_share(size_t percent) const {
    auto sorted = recent_;
    const size_t known = std::min(count_, kRecent);
    const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(known * percent / 100);
    std::nth_element(sorted.begin(), at, sorted.begin() + static_cast<std::ptrdiff_t>(known));
    return *at;
  }

  std::array<int64_t, kRecent> recent_{};
  size_t count_ = 0;
  int64_t limit_ns_ = kNever;
};

}  // namespace headrace
