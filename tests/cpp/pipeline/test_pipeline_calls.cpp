// The pipeline with Python steps: a call gets the image at its place in the recipe, and later steps get its result.
#include <doctest/doctest.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "core/fuse/fuse.h"
#include "core/fuse/sinks/rgbx_output.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

Step call(int number) {
  Step step;
  step.kind = Step::Kind::kCall;
  step.call = number;
  return step;
}

/// RandomCrop of 24 by 20, a call, and a second call at the end.
PipelineOptions crops_and_calls(int threads) {
  PipelineOptions options = crops(threads);
  options.recipe.steps.push_back(call(0));
  options.recipe.steps.push_back(call(1));
  return options;
}

/// Serves a call: adds the call's number plus one to every byte.
void serve(Pipeline& pipeline, PythonJob& job) {
  Bytes pixels = job.bytes;
  for (uint8_t& byte : pixels) byte = static_cast<uint8_t>(byte + job.call + 1);
  pipeline.finish(job, rgbx_image(pixels.data(), job.size), 10);
}

Bytes three_more(Bytes bytes) {
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(byte + 3);
  return bytes;
}

/// Keeps this thread, and those that it starts, on one core: a thread that is woken then runs before the one that woke
/// it goes on. Does nothing where the system has no such call.
class OneCore {
 public:
#if defined(__linux__)
  OneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_{};
#endif
};

}  // namespace

TEST_CASE("calls stand where they are, one after the other") {
  const Rows rows = some_rows(24);
  const Bytes truth = three_more(expected(crops(0), rows));
  for (const int threads : {0, 1, 3}) {
    CAPTURE(threads);
    Pipeline pipeline(crops_and_calls(threads));
    std::vector<std::thread> lanes;
    for (int i = 0; i < 2; ++i) {
      lanes.emplace_back([&] {
        while (!pipeline.closed())
          if (auto job = pipeline.next_call(kLong)) serve(pipeline, *job);
      });
      lanes.emplace_back([&] {
        while (!pipeline.closed())
          if (auto job = pipeline.next_pillow_job(kLong)) {
            const auto image = static_cast<size_t>(rows[static_cast<size_t>(job->sample)]);
            pipeline.finish(*job, rgbx_image(Images::all().pixels[image].data(), Images::all().sizes[image]), 1);
          }
      });
    }
    for (int i = 0; i < 5; ++i) {
      const auto batch = submit(pipeline, Images::all().table, rows);
      if (threads == 0) {
        while (pipeline.run_one()) {
        }
      }
      REQUIRE(pipeline.wait(*batch, kLong));
      CHECK(batch->take_failures().empty());
      CHECK(contents(pipeline, *batch) == truth);
    }
    const auto stats = pipeline.stats();
    const auto python =
        std::find_if(stats.begin(), stats.end(), [](const StageReport& one) { return one.stage == "python"; });
    REQUIRE(python != stats.end());
    CHECK(python->items == 2 * 5 * 24);
    CHECK(python->busy_ns == 2 * 5 * 24 * 10);
    pipeline.close();
    for (std::thread& lane : lanes) lane.join();
  }
}

TEST_CASE("what a sample took is counted before another thread gets the sample") {
  [[maybe_unused]] const OneCore pinned{};
  Pipeline pipeline(crops_and_calls(1));
  const auto items = [&](const char* stage) {
    for (const StageReport& one : pipeline.stats())
      if (one.stage == stage) return one.items;
    return int64_t{0};
  };
  int too_few = 0;
  for (int done = 1; done <= 500; ++done) {  // one at a time: this thread waits for each
    const auto batch = submit(pipeline, Images::all().table, {0});
    for (const int number : {0, 1}) {
      auto job = pipeline.next_call(kLong);
      REQUIRE(job);
      if (number == 0) too_few += items("decode") < done;
      serve(pipeline, *job);
    }
    REQUIRE(pipeline.wait(*batch, kLong));
  }
  CHECK(too_few == 0);
}

TEST_CASE("a call may finish the sample") {
  PipelineOptions options = crops(1);
  options.recipe.steps.push_back(call(0));
  Pipeline pipeline(options);
  const auto batch = submit(pipeline, Images::all().table, {0, 2});
  const size_t each = pipeline.options().strides.sample_bytes;
  Bytes truth;
  for (int i = 0; i < 2; ++i) {
    auto job = pipeline.next_call(kLong);
    REQUIRE(job);
    CHECK(job->size == Size{24, 20});
    CHECK(job->bytes.size() == 20 * 24 * kPixelBytes);
    const Bytes elements(each, static_cast<uint8_t>(7 + job->sample));
    CHECK_THROWS_AS(pipeline.finish_elements(*job, std::span(elements).first(each - 1), 0), std::invalid_argument);
    pipeline.finish_elements(*job, elements, 0);
    CHECK_THROWS_AS(pipeline.finish_elements(*job, elements, 0), std::logic_error);
  }
  REQUIRE(pipeline.wait(*batch, kLong));
  for (int sample = 0; sample < 2; ++sample) truth.insert(truth.end(), each, static_cast<uint8_t>(7 + sample));
  CHECK(contents(pipeline, *batch) == truth);
}

TEST_CASE("an error of a call, and an image of another size than the batch holds, are the sample's") {
  Pipeline pipeline(crops_and_calls(0));
  const auto batch = submit(pipeline, Images::all().table, {0, 2});
  while (pipeline.run_one()) {
  }
  auto first = pipeline.next_call(0ms), second = pipeline.next_call(0ms);
  REQUIRE(first);
  REQUIRE(second);
  pipeline.fail(*first, "no light");
  const Bytes pixel(kPixelBytes);
  pipeline.finish(*second, rgbx_image(pixel.data(), {1, 1}), 0);  // the second call gets this image
  auto last = pipeline.next_call(0ms);
  REQUIRE(last);
  CHECK(last->size == Size{1, 1});
  pipeline.finish(*last, rgbx_image(pixel.data(), {1, 1}), 0);
  REQUIRE(pipeline.wait(*batch, 0ms));
  const auto failures = batch->take_failures();
  REQUIRE(failures.size() == 2);
  CHECK(failures[0].stage == Stage::kTransform);
  CHECK(failures[0].reason == "no light");
  CHECK(failures[1].stage == Stage::kPlan);
}

TEST_CASE("calls of cancelled batches are dropped, and so is a late answer") {
  Pipeline pipeline(crops_and_calls(0));
  auto memory = std::make_unique<Bytes>(2 * pipeline.options().strides.sample_bytes);
  const auto cancelled = submit(pipeline, Images::all().table, {0, 2}, 1, memory->data());
  while (pipeline.run_one()) {
  }
  auto late = pipeline.next_call(0ms);
  REQUIRE(late);
  pipeline.cancel(*cancelled);
  memory.reset();
  serve(pipeline, *late);
  CHECK_FALSE(pipeline.next_call(0ms));
}
