// Spans of threads, while recordings begin and end.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "core/base/trace/recorder.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

int64_t count(const std::vector<ThreadSpans>& threads) {
  int64_t spans = 0;
  for (const ThreadSpans& one : threads) spans += static_cast<int64_t>(one.spans.size());
  return spans;
}

/// (nanoseconds, items) of each name.
std::map<std::string, std::pair<int64_t, int64_t>> sums(const std::vector<ThreadSpans>& threads) {
  std::map<std::string, std::pair<int64_t, int64_t>> sums;
  for (const ThreadSpans& one : threads) {
    for (const TimeSpan& span : one.spans) {
      sums[span.name].first += span.end_ns - span.begin_ns;
      sums[span.name].second += span.items;
    }
  }
  return sums;
}

void add_now(Recorder& recorder, const char* name) {
  const int64_t begin = now_ns();
  recorder.add(name, begin, now_ns());
}

/// Whether a thread's spans follow one another.
bool in_order(const ThreadSpans& one) {
  int64_t last = 0;
  for (const TimeSpan& span : one.spans) {
    if (span.begin_ns < last || span.end_ns < span.begin_ns) return false;
    last = span.end_ns;
  }
  return true;
}

}  // namespace

TEST_CASE("each thread's spans come back under its name, of threads that have ended, too") {
  Recorder recorder;
  REQUIRE(recorder.start(100'000));
  const int64_t begin = now_ns();
  for (const char* name : {"first", "second"}) {
    std::thread([&] {
      recorder.name_thread(name);
      recorder.add("work", begin, begin + 5, 3);
      recorder.add("rest", begin + 5, begin + 6);
    }).join();
  }
  const auto threads = recorder.stop();
  REQUIRE(threads.size() == 2);
  CHECK(threads[0].thread == "first");
  CHECK(threads[1].thread == "second");
  CHECK(threads[0].tid != 0);
  for (const ThreadSpans& one : threads) {
    REQUIRE(one.spans.size() == 2);
    CHECK(std::string(one.spans[0].name) == "work");
    CHECK(one.spans[0].end_ns - one.spans[0].begin_ns == 5);
    CHECK(one.spans[0].items == 3);
    CHECK(one.spans[1].begin_ns == one.spans[0].end_ns);
  }
}

TEST_CASE("only what happened in a recording is in it, and there is one recording at a time") {
  Recorder recorder;
  CHECK_FALSE(recorder.recording());
  add_now(recorder, "before");
  const int64_t long_ago = now_ns();
  REQUIRE(recorder.start(100));
  CHECK(recorder.recording());
  CHECK_FALSE(recorder.start(100));
  recorder.add("over", long_ago - 10, long_ago - 5);
  const int64_t end = now_ns();
  recorder.add("half", long_ago - 10, end);
  auto threads = recorder.stop();
  REQUIRE(count(threads) == 1);
  CHECK(std::string(threads[0].spans[0].name) == "half");
  CHECK(threads[0].spans[0].begin_ns >= long_ago);
  CHECK(threads[0].spans[0].end_ns == end);
  add_now(recorder, "after");
  REQUIRE(recorder.start(100));
  add_now(recorder, "again");
  threads = recorder.stop();
  REQUIRE(count(threads) == 1);
  CHECK(std::string(threads[0].spans[0].name) == "again");
}

TEST_CASE(
    "there is room for as many spans as asked for, whichever threads they are of, and what is beyond is counted") {
  Recorder recorder;
  constexpr int64_t kThreads = 5, kEach = 50;
  for (const int64_t room : {1, 100, 240}) {
    CAPTURE(room);
    REQUIRE(recorder.start(room));
    for (int64_t i = 0; i < kThreads; ++i) {
      std::thread([&] {
        for (int64_t k = 0; k < kEach; ++k) add_now(recorder, "work");
      }).join();
    }
    CHECK(count(recorder.stop()) == room);
    CHECK(recorder.dropped() == kThreads * kEach - room);
  }
  REQUIRE(recorder.start(kThreads));
  std::vector<std::thread> together;
  for (int64_t i = 0; i < kThreads; ++i) {
    together.emplace_back([&] { add_now(recorder, "work"); });
  }
  for (std::thread& one : together) one.join();
  CHECK(count(recorder.stop()) == kThreads);
  CHECK(recorder.dropped() == 0);
}

TEST_CASE("recordings begin and end while threads work, come and go") {
  Recorder recorder;
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      recorder.name_thread("worker", i);
      while (!over.load()) {
        add_now(recorder, "work");
      }
    });
  }
  threads.emplace_back([&] {
    while (!over.load()) {
      std::thread([&] { add_now(recorder, "short"); }).join();
    }
  });
  std::atomic<int64_t> recordings{0}, refused{0}, spans{0}, odd{0};
  const auto record = [&] {
    for (int k = 0; k < 150; ++k) {
      const int64_t earliest = now_ns();
      const bool mine = recorder.start(5000);
      std::this_thread::sleep_for(200us);
      if (!mine) {
        ++refused;
        continue;
      }
      const auto found = recorder.stop();
      const int64_t latest = now_ns();
      ++recordings;
      spans += count(found);
      for (const ThreadSpans& one : found) {
        if (!in_order(one)) ++odd;
        for (const TimeSpan& span : one.spans) {
          if (span.begin_ns < earliest || span.end_ns > latest) ++odd;
        }
      }
    }
  };
  std::thread other(record);
  record();
  other.join();
  over.store(true);
  for (std::thread& one : threads) one.join();
  CHECK(recordings + refused == 300);
  CHECK(recordings > 0);  // attempts of the two threads may collide, but the first one cannot
  CHECK(spans > 1000);
  CHECK(odd == 0);
}

TEST_CASE("a pipeline's spans are what its counters count") {
  for (const int threads : {0, 1, 3}) {
    CAPTURE(threads);
    PipelineOptions options = training(threads);
    options.recorder = std::make_shared<Recorder>();
    const auto recorder = options.recorder;
    REQUIRE(recorder->start(100'000));
    const Rows rows = some_rows(40);
    Pipeline pipeline(std::move(options));
    const auto batch = submit(pipeline, Images::all().table, rows);
    REQUIRE(complete(pipeline, *batch));
    const auto report = pipeline.stats();
    const auto found = recorder->stop();
    CHECK(recorder->dropped() == 0);
    const auto spans = sums(found);
    for (const StageReport& stage : report) {
      CAPTURE(stage.stage);
      if (stage.stage == "idle" || stage.items == 0) continue;  // a thread that is idle now has not recorded its span
      REQUIRE(spans.count(stage.stage) == 1);
      CHECK(spans.at(stage.stage).first == stage.busy_ns);
      CHECK(spans.at(stage.stage).second == stage.items);
    }
    CHECK(spans.at("decode").second == 40);  // each of them, not one in sixteen
    for (const ThreadSpans& one : found) {
      CHECK(in_order(one));
      CHECK(one.thread.starts_with("headrace worker ") == (threads > 0));
    }
  }
}
