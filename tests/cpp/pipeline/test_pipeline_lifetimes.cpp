// The pipeline when batches are cancelled or kept, when it is closed or forked, and when threads cannot be started.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <future>
#include <stdexcept>
#include <thread>

#include "support/in_child.h"
#include "support/pipeline_samples.h"
#include "support/sanitizers.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

TEST_CASE("of a cancelled batch nothing more is begun, and the others are delivered") {
  const GatedFiles files;
  Pipeline pipeline(training(1));
  const auto held = submit(pipeline, files.table, {Images::kCount});
  auto cancelled = submit(pipeline, files.table, some_rows(1000));
  const auto wanted = submit(pipeline, files.table, some_rows(6));
  const std::weak_ptr<uint8_t> slot = cancelled->slot.share();
  pipeline.cancel(*cancelled);
  CHECK(cancelled->remaining == 1000);
  cancelled.reset();
  files.gate.open(Images::all().jpegs[0]);
  CHECK(pipeline.wait(*held, kLong));
  CHECK(pipeline.wait(*wanted, kLong));
  CHECK(contents(pipeline, *wanted) == expected(training(0), some_rows(6)));
  CHECK(slot.expired());
  CHECK(pipeline.stats().at(static_cast<size_t>(Clock::kRead)).items == 7);
}

TEST_CASE("cancelling a batch in the caller's memory does not wait for a file system that does not answer") {
  const GatedFiles files;
  Pipeline pipeline(training(2));
  auto memory = std::make_unique<Bytes>(2 * pipeline.options().strides.sample_bytes);
  const auto batch = submit(pipeline, files.table, {Images::kCount, 1}, 1, memory->data());
  while (batch->remaining != 1) std::this_thread::yield();
  pipeline.cancel(*batch);
  memory.reset();  // AddressSanitizer reports a write from now on
  files.gate.open(Images::all().jpegs[0]);
  const auto next = submit(pipeline, Images::all().table, some_rows(8));
  CHECK(pipeline.wait(*next, kLong));
}

TEST_CASE("cancelling at any moment, in the caller's memory or in a slot") {
  Pipeline pipeline(training(3));
  for (int i = 0; i < 200; ++i) {
    Bytes memory(i % 2 == 0 ? 8 * pipeline.options().strides.sample_bytes : 0);
    const auto batch =
        submit(pipeline, Images::all().table, some_rows(8, i), 1, memory.empty() ? nullptr : memory.data());
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i * 10));
    pipeline.cancel(*batch);
  }
  const auto batch = submit(pipeline, Images::all().table, some_rows(8));
  CHECK(pipeline.wait(*batch, kLong));
  CHECK(contents(pipeline, *batch) == expected(training(0), some_rows(8)));
}

TEST_CASE("who cancels in the caller's memory is woken by threads that find the batch cancelled") {
  const Bytes pixel(3);
  const auto table = BlobTable::of_pixels({pixel.data(), {1, 1}, 3, 3, 3, 1}, 0, 1);
  PipelineOptions options = crops(4);
  options.recipe.steps.clear();
  options.recipe.draws = 0;
  options.recipe.output = {1, 1};
  options.strides = strides_of(Layout::kPlanar, 3, {1, 1}, 1);
  Pipeline pipeline(options);
  Bytes memory(3 * 4096);
  for (int i = 0; i < 2000; ++i) {
    const auto batch = submit(pipeline, table, Rows(4096), 1, memory.data());
    while (batch->remaining > 4096 - 1 - i % 64) std::this_thread::yield();
    auto cancelling = std::async(std::launch::async, [&] { pipeline.cancel(*batch); });
    const bool woken = cancelling.wait_for(kLong) == std::future_status::ready;
    if (!woken) pipeline.close();  // wakes it
    REQUIRE(woken);
  }
}

TEST_CASE("who waits for a batch is woken when it is cancelled") {
  const GatedFiles files;
  Pipeline pipeline(crops(1));
  const auto batch = submit(pipeline, files.table, {Images::kCount, 0});
  while (batch->unclaimed.left() == batch->size())
    std::this_thread::yield();  // otherwise the gate's sample may never be started
  std::thread canceller([&] { pipeline.cancel(*batch); });
  CHECK_FALSE(pipeline.wait(*batch, kLong));
  canceller.join();
  files.gate.open(Images::all().jpegs[0]);
}

TEST_CASE("without threads several callers make samples, one at a time") {
  const Rows rows = some_rows(48);
  Pipeline pipeline(training(0));
  const auto batch = submit(pipeline, Images::all().table, rows);
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      while (pipeline.run_one()) {
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  REQUIRE(pipeline.wait(*batch, kLong));
  CHECK(contents(pipeline, *batch) == expected(training(0), rows));
}

TEST_CASE("close wakes whoever waits, and the threads leave the rest of the batch") {
  const GatedFiles files;
  auto pipeline = std::make_unique<Pipeline>(training(1));  // it waits at the gate, and no other takes a sample
  Rows rows = some_rows(100'000);
  rows[0] = Images::kCount;
  const auto batch = submit(*pipeline, files.table, rows);
  auto waiting = std::async(std::launch::async, [&] { return pipeline->wait(*batch, kLong); });
  while (batch->unclaimed.left() == batch->size())
    std::this_thread::yield();  // otherwise the gate's sample may never be started
  pipeline->close();
  CHECK_FALSE(waiting.get());
  CHECK(pipeline->closed());
  CHECK_FALSE(pipeline->wait(*batch, kLong));
  files.gate.open(Images::all().jpegs[0]);
  pipeline.reset();
  CHECK(batch->remaining >= 99'999);
  CHECK(batch.use_count() == 1);
}

TEST_CASE("settle says whether a thread is still in the middle of a sample") {
  const GatedFiles files;
  Pipeline pipeline(training(2));
  const auto batch = submit(pipeline, files.table, {Images::kCount, 1});
  while (batch->remaining != 1) std::this_thread::yield();
  pipeline.close();
  CHECK_FALSE(pipeline.settle(20ms));
  files.gate.open(Images::all().jpegs[0]);
  CHECK(pipeline.settle(kLong));
}

TEST_CASE("a closed pipeline takes work and never does it") {
  for (const int threads : {0, 2}) {
    Pipeline pipeline(training(threads));
    pipeline.close();
    pipeline.close();
    const auto batch = submit(pipeline, Images::all().table, some_rows(3));
    CHECK_FALSE(complete(pipeline, *batch));
    CHECK_FALSE(pipeline.next_pillow_job(kLong));
    CHECK(batch->remaining == 3);
  }
}

TEST_CASE("pipelines made and dropped with work in flight") {
  for (int i = 0; i < 40; ++i) {
    Pipeline pipeline(training(i % 4));
    const auto first = submit(pipeline, Images::all().table, some_rows(10));
    const auto second = submit(pipeline, Images::all().table, some_rows(10));
    if (i % 3 == 0) CHECK(complete(pipeline, *first));
  }
}

TEST_CASE("slots are used again; who keeps batches gets more, unchanged even when the pipeline is gone") {
  std::vector<Lease> kept;
  std::vector<Bytes> copies;
  const size_t bytes = 4 * training(0).strides.sample_bytes;
  {
    Pipeline pipeline(training(2));
    for (int i = 0; i < 20; ++i) REQUIRE(complete(pipeline, *submit(pipeline, Images::all().table, some_rows(4, i))));
    CHECK(pipeline.slots() <= 3);
    for (int i = 0; i < 10; ++i) {
      const auto batch = submit(pipeline, Images::all().table, some_rows(4, i), static_cast<uint32_t>(i));
      REQUIRE(complete(pipeline, *batch));
      copies.push_back(contents(pipeline, *batch));
      kept.push_back(batch->slot.share());
    }
    CHECK(pipeline.slots() >= 10);
    for (int i = 0; i < 10; ++i) REQUIRE(complete(pipeline, *submit(pipeline, Images::all().table, some_rows(4, i))));
  }
  for (size_t i = 0; i < kept.size(); ++i) CHECK(std::memcmp(kept[i].get(), copies[i].data(), bytes) == 0);
}

TEST_CASE("a forked child is told so, may drop what it inherited, and can make its own") {
  auto pipeline = std::make_unique<Pipeline>(training(2));
  const Rows rows = some_rows(6);
  const Bytes truth = expected(training(0), rows);
  auto done = submit(*pipeline, Images::all().table, rows);
  REQUIRE(complete(*pipeline, *done));
  Lease lease = done->slot.share();
  auto flying = submit(*pipeline, Images::all().table, some_rows(200));
  // AddressSanitizer's allocator may be locked by a busy thread when the process forks, and stays so in the child.
  if (kAddressSanitizer) REQUIRE(complete(*pipeline, *flying));

  CHECK(in_child([&] {
    const auto refused = [](auto call) {
      try {
        call();
      } catch (const std::logic_error& error) {
        return std::string(error.what()).find("forked") != std::string::npos;
      }
      return false;
    };
    PythonJob job;
    bool fine = refused([&] { submit(*pipeline, Images::all().table, rows); }) &&
                refused([&] { pipeline->repair(*done, {0}, Images::all().table, {0}, draws_of({0}, 23)); }) &&
                refused([&] { pipeline->wait(*flying, 1ms); }) && refused([&] { pipeline->run_one(); }) &&
                refused([&] { pipeline->next_pillow_job(1ms); }) && refused([&] { pipeline->stats(); }) &&
                refused([&] { pipeline->slots(); }) && refused([&] { pipeline->fail(job, ""); });
    fine = fine && pipeline->closed() && pipeline->pillow_jobs_waiting() == 0;
    pipeline->cancel(*flying);
    pipeline->close();
    flying.reset();
    pipeline.reset();
    done.reset();
    fine = fine && std::memcmp(lease.get(), truth.data(), truth.size()) == 0;
    lease.reset();
    // ThreadSanitizer ends a process that starts threads after such a fork.
    Pipeline own(training(kThreadSanitizer ? 0 : 2));
    const auto batch = submit(own, Images::all().table, rows);
    return fine && complete(own, *batch) && contents(own, *batch) == truth;
  }));

  REQUIRE(complete(*pipeline, *flying));  // the parent is not affected
  CHECK(contents(*pipeline, *done) == truth);
}

TEST_CASE("where not all threads can be started there is an error and no hang") {
  if (kAddressSanitizer || kThreadSanitizer) return;  // they need the memory that the limit below denies
  CHECK(in_child([] {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = static_cast<rlim_t>(pages) * 4096 + (rlim_t{100} << 20);
    const rlimit space{limit, limit};
    if (setrlimit(RLIMIT_AS, &space) != 0) return false;
    try {
      const Pipeline pipeline(training(500));  // a stack of 8 MB each
    } catch (const std::exception&) {
      return true;
    }
    return false;
  }));
}
