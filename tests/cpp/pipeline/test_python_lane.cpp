// The lane to Pillow: jobs in order, timeouts, nothing kept after close.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "core/pipeline/python_lane.h"

using namespace headrace;
using namespace std::chrono_literals;

namespace {

PythonJob job_of(std::shared_ptr<Batch> batch, int sample) {
  return {std::move(batch), sample, {static_cast<uint8_t>(sample)}, "not a JPEG"};
}

}  // namespace

TEST_CASE("jobs come in order, with their bytes and the reason") {
  PythonLane lane;
  const auto batch = std::make_shared<Batch>();
  lane.push(job_of(batch, 4));
  lane.push(job_of(batch, 2));
  CHECK(lane.waiting() == 2);
  const auto first = lane.pop(0ms), second = lane.pop(0ms);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->sample == 4);
  CHECK(first->bytes == std::vector<uint8_t>{4});
  CHECK(first->reason == "not a JPEG");
  CHECK(second->sample == 2);
  CHECK(lane.waiting() == 0);
}

TEST_CASE("a job that is put back is the next one") {
  PythonLane lane;
  const auto batch = std::make_shared<Batch>();
  for (const int sample : {4, 2}) lane.push(job_of(batch, sample));
  auto first = lane.pop(0ms);
  REQUIRE(first);
  lane.put_back(std::move(*first));
  CHECK(lane.waiting() == 2);
  first = lane.pop(0ms);
  REQUIRE(first);
  CHECK(first->sample == 4);
  lane.close();
  lane.put_back(std::move(*first));  // dropped
  CHECK(lane.waiting() == 0);
  CHECK(batch.use_count() == 1);
}

TEST_CASE("patience ends") {
  PythonLane lane;
  CHECK_FALSE(lane.pop(0ms));
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(lane.pop(30ms));
  CHECK(std::chrono::steady_clock::now() - begin >= 30ms);
}

TEST_CASE("jobs of a cancelled batch are passed over and dropped") {
  PythonLane lane;
  const auto cancelled = std::make_shared<Batch>(), wanted = std::make_shared<Batch>();
  lane.push(job_of(cancelled, 0));
  lane.push(job_of(wanted, 1));
  lane.push(job_of(cancelled, 2));
  cancelled->cancelled = true;
  const auto job = lane.pop(0ms);
  REQUIRE(job);
  CHECK(job->batch == wanted);
  CHECK_FALSE(lane.pop(0ms));
  CHECK(cancelled.use_count() == 1);
}

TEST_CASE("close wakes whoever waits, drops what waits, and takes nothing any more") {
  PythonLane lane;
  const auto batch = std::make_shared<Batch>();
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (lane.pop(1h)) {
      }
      ++woken;
    });
  }
  lane.push(job_of(batch, 0));
  lane.close();
  for (std::thread& thread : threads) thread.join();
  CHECK(woken == 3);
  lane.push(job_of(batch, 1));
  CHECK(lane.waiting() == 0);
  CHECK_FALSE(lane.pop(1h));
  CHECK(batch.use_count() == 1);
}

TEST_CASE("many threads on both sides: each job is taken once") {
  PythonLane lane;
  const auto batch = std::make_shared<Batch>();
  constexpr int kJobs = 3000;
  std::vector<std::atomic<int>> taken(kJobs);
  std::atomic<int> left{kJobs};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < kJobs; i += 3) lane.push(job_of(batch, i));
    });
    threads.emplace_back([&] {
      while (const auto job = lane.pop(1h)) {
        ++taken[static_cast<size_t>(job->sample)];
        --left;
      }
    });
  }
  while (left > 0) std::this_thread::yield();
  lane.close();
  for (std::thread& thread : threads) thread.join();
  int wrong = 0;
  for (const auto& count : taken) wrong += count != 1;
  CHECK(wrong == 0);
}
