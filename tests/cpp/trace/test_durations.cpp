// Buckets of durations: every duration is between the bounds of its own, and one writer's counts are all there.
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "core/base/trace/durations.h"

using namespace headrace;

TEST_CASE("a duration is between the bounds of its bucket, which are at most 25 % apart") {
  for (int64_t ns = 0; ns < int64_t{7} << 36; ns += 1 + ns / 9) {
    const size_t bucket = duration_bucket(ns);
    REQUIRE(bucket + 1 < static_cast<size_t>(kDurationBuckets));
    CHECK(duration_bound(bucket) <= ns);
    CHECK(ns < duration_bound(bucket + 1));
    if (ns >= 8) CHECK(4 * duration_bound(bucket + 1) <= 5 * duration_bound(bucket));
  }
}

TEST_CASE("durations beyond the buckets are in the first and the last") {
  CHECK(duration_bucket(-1) == 0);
  CHECK(duration_bucket(int64_t{1} << 62) == kDurationBuckets - 1);
  CHECK(duration_bucket(duration_bound(kDurationBuckets - 1)) == kDurationBuckets - 1);
}

TEST_CASE("a reader sees what one writer and several have counted") {
  Durations own, shared;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&shared] {
      for (int64_t ns = 0; ns < 1000; ++ns) shared.add_shared(ns);
    });
  }
  for (int64_t ns = 0; ns < 1000; ++ns) own.add(ns);
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> one, three;
  add_counts(own, one);
  add_counts(shared, three);
  add_counts(own, one);
  add_counts(own, one);
  CHECK(one == three);
  CHECK(one.at(duration_bucket(999)) > 0);
}
