// Samples that a helper takes, makes, leaves or returns: each is made once, with the bytes that it has here.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/pipeline/batch/sample_range.h"
#include "core/pipeline/sample_queue.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

/// The options of a helper: the same recipe, whose samples stay bytes (height, width, channels).
PipelineOptions helper_of(const PipelineOptions& options) {
  PipelineOptions bytes = options;
  const auto channels = static_cast<size_t>(options.strides.channels);
  bytes.lut.resize(256 * channels);
  for (size_t i = 0; i < bytes.lut.size(); ++i) bytes.lut[i] = static_cast<uint8_t>(i % 256);
  bytes.layout = Layout::kChannelsLast;
  bytes.strides = strides_of(bytes.layout, options.strides.channels, options.recipe.output, 1);
  return bytes;
}

/// What a helper answers to a job.
struct Answer {
  Bytes samples, made;
  std::vector<int32_t> sizes;

  HelperAnswer view() const { return {samples, false, made, sizes}; }
};

/// `left`: number of a sample in the job that the helper does not make; -1: none.
Answer answer_to(const PipelineOptions& options, const HelperJob& job, int left = -1) {
  PipelineOptions own = helper_of(options);
  own.threads = 0;
  Pipeline pipeline(own);
  const auto first = static_cast<size_t>(job.samples.first), count = static_cast<size_t>(job.samples.count);
  const auto each = static_cast<size_t>(options.recipe.draws);
  const Rows rows(job.batch->rows.begin() + job.samples.first,
                  job.batch->rows.begin() + job.samples.first + job.samples.count);
  const auto draws = job.batch->draws.begin() + static_cast<ptrdiff_t>(first * each);
  Answer answer;
  answer.samples.resize(count * own.strides.sample_bytes);
  const auto batch = pipeline.submit(job.batch->blobs, rows, {draws, draws + static_cast<ptrdiff_t>(count * each)},
                                     {answer.samples.data(), 0});
  REQUIRE(complete(pipeline, *batch));
  for (size_t i = 0; i < count; ++i) {
    answer.made.push_back(static_cast<int>(i) != left);
    answer.sizes.push_back(batch->sizes[i].height);
    answer.sizes.push_back(batch->sizes[i].width);
  }
  return answer;
}

}  // namespace

TEST_CASE("a range gives each sample once, from both ends") {
  SampleRange range;
  range.reset(10);
  CHECK(range.take_first() == 0);
  const SampleRun last = range.take_last(4);
  CHECK((last.first == 6 && last.count == 4));
  CHECK(range.left() == 5);
  const SampleRun rest = range.take_last(100);
  CHECK((rest.first == 1 && rest.count == 5));
  CHECK(range.take_first() == -1);
  CHECK(range.take_last(1).count == 0);
  CHECK(range.left() == 0);
}

TEST_CASE("threads at both ends of a range take each sample once") {
  constexpr int kSamples = 20000;
  SampleRange range;
  range.reset(kSamples);
  std::vector<std::atomic<int>> taken(kSamples);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (;;) {
        if (t % 2 == 0) {
          const int one = range.take_first();
          if (one < 0) return;
          ++taken[static_cast<size_t>(one)];
        } else {
          const SampleRun run = range.take_last(7);
          if (run.count == 0) return;
          for (int i = 0; i < run.count; ++i) ++taken[static_cast<size_t>(run.first + i)];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : taken) REQUIRE(one == 1);
}

TEST_CASE("helpers take what is due last, and leave the workers their share") {
  SampleQueue queue;
  const auto batch_of = [](int samples) {
    auto batch = std::make_shared<Batch>();
    batch->rows.resize(static_cast<size_t>(samples));
    batch->unclaimed.reset(samples);
    return batch;
  };
  const auto first = batch_of(4), second = batch_of(6);
  queue.push(first);
  queue.push(second);
  CHECK(queue.take_last(8, 10, 0ms).batch == nullptr);
  SampleQueue::Run run = queue.take_last(8, 7, 0ms);
  CHECK((run.batch == second && run.samples.first == 3 && run.samples.count == 3));
  run = queue.take_last(8, 2, 0ms);
  CHECK((run.batch == second && run.samples.first == 0 && run.samples.count == 3));
  SampleQueue::Task task;
  REQUIRE((queue.pop(task) && task.batch == first && task.sample == 0));
  queue.give_back(run);
  for (int i = 0; i < 3; ++i) REQUIRE((queue.pop(task) && task.batch == second && task.sample == i));
  for (int i = 1; i < 4; ++i) REQUIRE((queue.pop(task) && task.batch == first && task.sample == i));
  CHECK_FALSE(queue.try_pop(task));
  second->cancelled = true;
  queue.give_back({second, {3, 3}});
  CHECK_FALSE(queue.try_pop(task));
  std::thread waiting([&] { CHECK(queue.take_last(1, 0, std::chrono::milliseconds(kLong)).batch == nullptr); });
  queue.close();
  waiting.join();
}

TEST_CASE("after a returned sample a worker goes on with the batch that is due") {
  SampleQueue queue;
  std::vector<std::shared_ptr<Batch>> batches;
  for (int i = 0; i < 2; ++i) {
    batches.push_back(std::make_shared<Batch>());
    batches.back()->rows.resize(4);
    batches.back()->unclaimed.reset(4);
    queue.push(batches.back());
  }
  const SampleQueue::Run run = queue.take_last(1, 0, 0ms);
  SampleQueue::Task task;
  REQUIRE((queue.pop(task) && task.batch == batches[0] && task.sample == 0));
  queue.give_back(run);
  REQUIRE((queue.pop(task) && task.batch == batches[1] && task.sample == 3));
  for (int i = 1; i < 4; ++i) REQUIRE((queue.pop(task) && task.batch == batches[0] && task.sample == i));
  for (int i = 0; i < 3; ++i) REQUIRE((queue.pop(task) && task.batch == batches[1] && task.sample == i));
  CHECK_FALSE(queue.try_pop(task));
}

TEST_CASE("what a helper makes are the bytes that are made here") {
  const Rows rows = some_rows(3 * Images::kCount);
  for (const auto& recipe : {crops(0), training(0)}) {
    const Bytes truth = expected(recipe, rows, 9);
    PipelineOptions options = recipe;
    options.threads = 2;
    Pipeline pipeline(options);
    std::atomic<bool> ended{false};
    std::atomic<int> jobs{0};
    std::thread helper([&] {
      for (int number = 0; !ended; ++number) {
        auto job = pipeline.next_helper_job(5, 0, 5ms);
        if (!job) continue;
        ++jobs;
        if (number % 4 == 1) {
          pipeline.put_back(*job);
        } else if (number % 4 == 2) {
          pipeline.finish(*job, answer_to(recipe, *job, 1).view());
        } else {
          pipeline.finish(*job, answer_to(recipe, *job).view());
        }
        Bytes files;
        CHECK_THROWS_AS(pipeline.read_files(*job, files), std::logic_error);
      }
    });
    while (jobs < 6) {
      const auto batch = submit(pipeline, Images::all().table, rows, 9);
      REQUIRE(complete(pipeline, *batch));
      CHECK(batch->take_failures().empty());
      CHECK(contents(pipeline, *batch) == truth);
    }
    ended = true;
    helper.join();
  }
}

TEST_CASE("an answer that does not fit its job is refused, and its samples are made here") {
  const PipelineOptions recipe = crops(0);
  Pipeline pipeline(recipe);
  const Rows rows = some_rows(6);
  const auto batch = submit(pipeline, Images::all().table, rows, 9);
  auto job = pipeline.next_helper_job(3, 0, 0ms);
  REQUIRE(job.has_value());
  Bytes files(100), truth;
  const std::vector<int64_t> sizes = pipeline.read_files(*job, files);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Bytes& one = Images::all().jpegs[static_cast<size_t>(rows[static_cast<size_t>(job->samples.first) + i])];
    CHECK(sizes[i] == static_cast<int64_t>(one.size()));
    truth.insert(truth.end(), one.begin(), one.end());
  }
  CHECK(files == truth);
  Answer answer = answer_to(recipe, *job);
  answer.samples.pop_back();
  CHECK_THROWS_AS(pipeline.finish(*job, answer.view()), std::invalid_argument);
  pipeline.put_back(*job);
  pipeline.put_back(*job);
  REQUIRE(complete(pipeline, *batch));
  CHECK(contents(pipeline, *batch) == expected(recipe, rows, 9));
}

TEST_CASE("finished elements are stored as they are, and a cancelled batch takes none") {
  const PipelineOptions recipe = training(0);
  Pipeline pipeline(recipe);
  const Rows rows = some_rows(4);
  const Bytes truth = expected(recipe, rows, 9);
  const auto batch = submit(pipeline, Images::all().table, rows, 9);
  auto job = pipeline.next_helper_job(2, 0, 0ms);
  REQUIRE(job.has_value());
  const size_t each = recipe.strides.sample_bytes, first = static_cast<size_t>(job->samples.first);
  const Bytes made{1, 1};
  const std::vector<int32_t> sizes(4, 1);
  pipeline.finish(*job, {{truth.data() + first * each, 2 * each}, true, made, sizes});
  REQUIRE(complete(pipeline, *batch));
  CHECK(contents(pipeline, *batch) == truth);
  const auto second = submit(pipeline, Images::all().table, rows, 9);
  auto late = pipeline.next_helper_job(2, 0, 0ms);
  REQUIRE(late.has_value());
  pipeline.cancel(*second);
  pipeline.finish(*late, {{truth.data(), 2 * each}, true, made, sizes});
  CHECK_FALSE(second->ready);
}
