// Threads added to a pipeline and taken away while it works: the same bytes, counters that go on, and CPUs.
#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "core/base/clock.h"
#include "core/base/platform/platform.h"
#include "support/in_child.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

int64_t samples_read(const Pipeline& pipeline) { return pipeline.stats().at(static_cast<size_t>(Clock::kRead)).items; }

int64_t idle_ns(const Pipeline& pipeline) { return pipeline.stats().at(static_cast<size_t>(Clock::kIdle)).busy_ns; }

#if HEADRACE_LINUX
std::vector<int> allowed_cpus() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// The CPUs of each thread of a pipeline, once `count` have begun.
std::vector<std::vector<int>> cpus_of(const Pipeline& pipeline, size_t count) {
  while (pipeline.thread_ids().size() < count) std::this_thread::yield();
  std::vector<std::vector<int>> found;
  for (const int64_t id : pipeline.thread_ids()) {
    cpu_set_t set;
    REQUIRE(sched_getaffinity(static_cast<pid_t>(id), sizeof set, &set) == 0);
    found.emplace_back();
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<size_t>(cpu), &set)) found.back().push_back(cpu);
    }
  }
  return found;
}
#endif

}  // namespace

TEST_CASE("threads come and go between and within batches, and the bytes stay the same") {
  std::vector<Bytes> truth;
  for (int k = 0; k < 30; ++k) truth.push_back(expected(training(0), some_rows(1 + k % 13, k), 100 + k));
  Pipeline pipeline(training(2));
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (int i = 0; !done; ++i) pipeline.resize(1 + (i * 7) % 6);
  });
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<Batch>> flying;
    for (int k = 0; k < 30; ++k) {
      flying.push_back(submit(pipeline, Images::all().table, some_rows(1 + k % 13, k), 100 + k));
    }
    for (size_t k = 0; k < flying.size(); ++k) {
      REQUIRE(pipeline.wait(*flying[k], kLong));
      CHECK(contents(pipeline, *flying[k]) == truth[k]);
      (void)pipeline.stats();
      (void)pipeline.thread_ids();
    }
  }
  done = true;
  other.join();
}

TEST_CASE("of four threads one is left, and the counters keep what the others did") {
  Pipeline pipeline(training(4));
  while (pipeline.thread_ids().size() < 4) std::this_thread::yield();  // on a busy machine a thread begins late
  REQUIRE(pipeline.wait(*submit(pipeline, Images::all().table, some_rows(64)), kLong));
  pipeline.resize(1);
  CHECK(pipeline.threads() == 1);
  CHECK(pipeline.asleep() == 3);
  CHECK(samples_read(pipeline) == 64);
  REQUIRE(pipeline.wait(*submit(pipeline, Images::all().table, some_rows(40)), kLong));
  CHECK(samples_read(pipeline) == 104);
  CHECK(pipeline.thread_ids().size() == 4);
  pipeline.resize(6);
  CHECK(pipeline.threads() == 6);
  CHECK(pipeline.asleep() == 0);
  REQUIRE(pipeline.wait(*submit(pipeline, Images::all().table, some_rows(64)), kLong));
  CHECK(samples_read(pipeline) == 168);
}

TEST_CASE("a thread that is not wanted takes no sample: after one that is blocked the others wait") {
  const GatedFiles files;
  Pipeline pipeline(training(2));
  pipeline.resize(1);
  const auto held = submit(pipeline, files.table, {Images::kCount});
  const auto next = submit(pipeline, files.table, some_rows(4));
  CHECK_FALSE(pipeline.wait(*next, 50ms));
  pipeline.resize(2);
  CHECK(pipeline.wait(*next, kLong));
  CHECK_FALSE(pipeline.wait(*held, 0ms));
  files.gate.open(Images::all().jpegs[0]);
  CHECK(pipeline.wait(*held, kLong));
}

TEST_CASE("time asleep is not counted as idle") {
  Pipeline pipeline(training(3));
  while (pipeline.thread_ids().size() < 3) std::this_thread::yield();
  pipeline.resize(1);
  REQUIRE(pipeline.wait(*submit(pipeline, Images::all().table, some_rows(1)), kLong));
  while (pipeline.asleep() < 2) std::this_thread::yield();
  const int64_t before = idle_ns(pipeline), begin = now_ns();
  std::this_thread::sleep_for(300ms);
  pipeline.resize(3);
  const int64_t woken = now_ns();
  REQUIRE(pipeline.wait(*submit(pipeline, Images::all().table, some_rows(64)), kLong));
  const int64_t idle = idle_ns(pipeline) - before, awake = now_ns() - woken;
  CHECK(idle < 2 * (woken - begin) + 3 * awake);  // with the two that sleep it would be three times the pause
}

TEST_CASE("closing wakes threads that sleep, and a closed pipeline gets no threads") {
  Pipeline pipeline(training(3));
  pipeline.resize(1);
  pipeline.close();
  CHECK(pipeline.settle(kLong));
  pipeline.resize(5);
  CHECK(pipeline.threads() == 1);
}

TEST_CASE("what a pipeline refuses") {
  Pipeline with(training(1)), without(training(0));
  CHECK_THROWS_AS(with.resize(0), std::invalid_argument);
  CHECK_THROWS_AS(without.resize(1), std::logic_error);
  CHECK(without.threads() == 0);
  CHECK(in_child([&] {
    try {
      with.resize(2);
    } catch (const std::logic_error&) {
      return true;
    }
    return false;
  }));
}

#if HEADRACE_LINUX
TEST_CASE("threads run on the CPUs that they are given, those that come later too") {
  const std::vector<int> allowed = allowed_cpus();
  const std::vector<int> last{allowed.back()};
  Pipeline pipeline(training(2));
  pipeline.bind_threads(last);
  for (const auto& cpus : cpus_of(pipeline, 2)) CHECK(cpus == last);
  pipeline.resize(4);
  for (const auto& cpus : cpus_of(pipeline, 4)) CHECK(cpus == last);
  CHECK(allowed_cpus() == allowed);  // this thread's stay
  CHECK_THROWS_AS(pipeline.bind_threads(std::vector<int>{5000}), std::system_error);
  for (const auto& cpus : cpus_of(pipeline, 4)) CHECK(cpus == last);
  REQUIRE(pipeline.wait(*submit(pipeline, Images::all().table, some_rows(64)), kLong));
}
#else
TEST_CASE("where threads cannot be bound to CPUs, this is said, and they go on") {
  Pipeline pipeline(training(2));
  CHECK_THROWS_AS(pipeline.bind_threads(std::vector<int>{0}), std::system_error);
  REQUIRE(pipeline.wait(*submit(pipeline, Images::all().table, some_rows(64)), kLong));
}
#endif
