// The pipeline: the right bytes from any number of threads, and failures with sample, stage and errno.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/pipeline/workers/cpu_backend.h"
#include "support/jpeg_samples.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

TEST_CASE("a crop has the pixels of a full decode, planar and channels last") {
  const Images& images = Images::all();
  for (const bool last : {false, true}) {
    PipelineOptions options = crops(2);
    if (last) options.strides = strides_of(Layout::kChannelsLast, 3, {24, 20}, 1);
    Pipeline pipeline(options);
    const Rows rows = some_rows(Images::kCount);
    const std::vector<double> draws = draws_of(rows, 2);
    const auto batch = submit(pipeline, images.table, rows);
    REQUIRE(complete(pipeline, *batch));
    CHECK(batch->take_failures().empty());
    int wrong = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto image = static_cast<size_t>(rows[i]);
      const int top = static_cast<int>(draws[2 * i] * (images.sizes[image].height - 20 + 1));
      const int left = static_cast<int>(draws[2 * i + 1] * (images.sizes[image].width - 24 + 1));
      for (int y = 0; y < 20; ++y)
        for (int x = 0; x < 24; ++x)
          for (int c = 0; c < 3; ++c) {
            const int from = ((top + y) * images.sizes[image].width + left + x) * kPixelBytes + c;
            const int to = last ? (y * 24 + x) * 3 + c : (c * 20 + y) * 24 + x;
            wrong += batch->memory[i * 3 * 20 * 24 + static_cast<size_t>(to)] !=
                     images.pixels[image][static_cast<size_t>(from)];
          }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("any number of threads makes the same bytes, batch after batch") {
  std::vector<Bytes> truth;
  for (int k = 0; k < 12; ++k) truth.push_back(expected(training(0), some_rows(1 + 3 * (k % 5), k), 100 + k));
  for (const int threads : {0, 1, 2, 7}) {
    CAPTURE(threads);
    Pipeline pipeline(training(threads));
    std::vector<std::shared_ptr<Batch>> flying;
    for (size_t k = 0; k < truth.size() + 3; ++k) {
      if (k < truth.size()) {
        const int number = static_cast<int>(k);
        flying.push_back(submit(pipeline, Images::all().table, some_rows(1 + 3 * (number % 5), number), 100 + number));
      }
      if (k < 3) continue;
      const std::shared_ptr<Batch> batch = std::exchange(flying[k - 3], nullptr);
      REQUIRE(complete(pipeline, *batch));
      CHECK(contents(pipeline, *batch) == truth[k - 3]);
    }
  }
}

TEST_CASE("consumers in several threads share a pipeline") {
  const Rows rows = some_rows(9);
  const Bytes truth = expected(training(0), rows);
  Pipeline pipeline(training(3));
  std::atomic<int> right{0};
  std::vector<std::thread> consumers;
  for (int t = 0; t < 4; ++t) {
    consumers.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const auto batch = submit(pipeline, Images::all().table, rows);
        right += pipeline.wait(*batch, kLong) && contents(pipeline, *batch) == truth;
      }
    });
  }
  for (std::thread& consumer : consumers) consumer.join();
  CHECK(right == 40);
}

TEST_CASE("a batch goes into the caller's memory where there is some") {
  const Rows rows = some_rows(5);
  Pipeline pipeline(training(2));
  Bytes memory(5 * pipeline.options().strides.sample_bytes);
  const auto batch = submit(pipeline, Images::all().table, rows, 1, memory.data());
  REQUIRE(complete(pipeline, *batch));
  CHECK(memory == expected(training(0), rows));
  CHECK(batch->slot.empty());
  CHECK(pipeline.slots() == 0);
}

TEST_CASE("an empty batch is complete at once") {
  Pipeline pipeline(training(1));
  const auto batch = submit(pipeline, Images::all().table, {});
  CHECK(pipeline.wait(*batch, 0ms));
}

TEST_CASE("rows and draws that do not fit are refused") {
  Pipeline pipeline(training(1));
  const auto& table = Images::all().table;
  CHECK_THROWS_AS(pipeline.submit(table, {0}, {}, {}), std::invalid_argument);
  CHECK_THROWS_AS(pipeline.submit(table, {Images::kCount}, draws_of({0}, 23), {}), std::out_of_range);
  CHECK_THROWS_AS(pipeline.submit(table, {-1}, draws_of({0}, 23), {}), std::out_of_range);
}

TEST_CASE("one slow sample delays nobody else") {
  const GatedFiles files;
  Pipeline pipeline(training(2));
  const auto slow = submit(pipeline, files.table, {Images::kCount, 3});
  const auto next = submit(pipeline, files.table, some_rows(20));
  CHECK(pipeline.wait(*next, kLong));
  CHECK_FALSE(pipeline.wait(*slow, 0ms));
  CHECK(slow->remaining == 1);
  files.gate.open(Images::all().jpegs[0]);
  CHECK(pipeline.wait(*slow, kLong));
  CHECK(contents(pipeline, *next) == expected(training(0), some_rows(20)));
}

TEST_CASE("what cannot be made is named, with stage and errno, and the rest is delivered") {
  const TemporaryFolder folder;
  const std::string small = folder.file("small", make_jpeg({.width = 10, .height = 50}));
  const std::string fine = folder.file("fine", Images::all().jpegs[2]);
  const auto table = table_of({fine, folder.path("missing"), small, folder.path(""), fine});
  for (const int threads : {0, 3}) {
    Pipeline pipeline(crops(threads));
    const auto batch = submit(pipeline, table, {0, 1, 2, 3, 4});
    REQUIRE(complete(pipeline, *batch));
    std::vector<Failure> failures = batch->take_failures();
    REQUIRE(failures.size() == 3);
    std::sort(failures.begin(), failures.end(), [](const auto& a, const auto& b) { return a.sample < b.sample; });
    CHECK(failures[0].sample == 1);
    CHECK(failures[0].stage == Stage::kRead);
    CHECK(failures[0].os_errno == ENOENT);
    CHECK(failures[1].sample == 2);
    CHECK(failures[1].stage == Stage::kPlan);
    CHECK(failures[1].os_errno == 0);
    CHECK(failures[1].reason.find("Required crop size (20, 24)") == 0);
    CHECK(failures[2].sample == 3);
    CHECK(failures[2].os_errno == EISDIR);

    const auto alone = submit(pipeline, table, {0, 0, 0, 0, 4});  // the same draws at 0 and 4
    REQUIRE(complete(pipeline, *alone));
    const size_t bytes = pipeline.options().strides.sample_bytes;
    CHECK(std::memcmp(batch->memory, alone->memory, bytes) == 0);
    CHECK(std::memcmp(batch->memory + 4 * bytes, alone->memory + 4 * bytes, bytes) == 0);
  }
}

TEST_CASE("repair makes other samples in place, ahead of what is queued") {
  const TemporaryFolder folder;
  const GatedFiles files;
  Pipeline pipeline(training(1));
  const auto missing = test::TemporaryFolder().path("gone");
  const auto table =
      table_of({folder.file("a", Images::all().jpegs[0]), missing, folder.file("c", Images::all().jpegs[2]), missing});
  const auto batch = submit(pipeline, table, {0, 1, 2, 3});
  REQUIRE(pipeline.wait(*batch, kLong));
  REQUIRE(batch->take_failures().size() == 2);

  const auto held = submit(pipeline, files.table, {Images::kCount});
  const auto queued = submit(pipeline, files.table, {Images::kCount});  // not opened before the repair is complete
  const Rows rows{8, 9};
  const auto repair = pipeline.repair(*batch, {3, 1}, Images::all().table, rows, draws_of(rows, 23));
  files.gate.open(Images::all().jpegs[0]);
  CHECK(pipeline.wait(*repair, kLong));
  CHECK(repair->take_failures().empty());
  CHECK(pipeline.wait(*held, kLong));
  files.gate.open(Images::all().jpegs[0]);
  CHECK(pipeline.wait(*queued, kLong));

  const size_t bytes = pipeline.options().strides.sample_bytes;
  const Bytes truth = expected(training(0), {0, 9, 2, 8});
  CHECK(Bytes(batch->memory, batch->memory + 4 * bytes) == truth);
  CHECK(repair->memory == batch->memory);
}

TEST_CASE("a larger batch starts a larger pool, a smaller one stays in it") {
  Pipeline pipeline(training(2));
  for (const int count : {4, 9, 2, 30, 1}) {
    const auto batch = submit(pipeline, Images::all().table, some_rows(count));
    REQUIRE(complete(pipeline, *batch));
    CHECK(contents(pipeline, *batch) == expected(training(0), some_rows(count)));
  }
}

TEST_CASE("the counters count") {
  Pipeline pipeline(training(3));
  const auto batch = submit(pipeline, Images::all().table, some_rows(48));
  REQUIRE(complete(pipeline, *batch));
  const auto stats = pipeline.stats();
  CHECK(stats.at(static_cast<size_t>(Clock::kRead)).items == 48);
  CHECK(stats.at(static_cast<size_t>(Clock::kDecode)).items >= 1);
  CHECK(stats.at(static_cast<size_t>(Clock::kDecode)).busy_ns > 0);
  const auto& reads = stats.at(static_cast<size_t>(Clock::kRead)).durations;
  CHECK(std::accumulate(reads.begin(), reads.end(), int64_t{0}) == 48);
  int64_t bytes = 0;
  for (const int64_t row : some_rows(48)) bytes += static_cast<int64_t>(Images::all().table->at(row).size);
  CHECK(pipeline.bytes_read() == bytes);
  CHECK(pipeline.thread_ids().size() <= 3);
  CHECK(Pipeline(training(0)).thread_ids().empty());
}

TEST_CASE("the pages of new memory are a stage of their own, once") {
  Pipeline pipeline(training(1));
  const auto memory = [&] { return pipeline.stats().at(static_cast<size_t>(Clock::kMemory)).items; };
  for (int batch = 0; batch < 3; ++batch) {
    const auto made = submit(pipeline, Images::all().table, some_rows(48));
    REQUIRE(complete(pipeline, *made));
    CHECK(contents(pipeline, *made) == expected(training(0), some_rows(48)));
  }
  const int64_t first = memory();
  CHECK(first >= 1);
  CHECK(first <= pipeline.stats().at(static_cast<size_t>(Clock::kDecode)).items);
  CHECK(first < 9);  // of nine timed samples those in new memory
}

TEST_CASE("batches in this machine's memory have no device side") {
  CpuBackend backend(training(0), kernels(), 1);
  CHECK(backend.device_side() == nullptr);
  CHECK(Pipeline(training(0)).trouble() == "");
}
