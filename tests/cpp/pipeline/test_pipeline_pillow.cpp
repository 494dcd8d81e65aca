// The pipeline and what it leaves to Pillow: pixels, errors and late answers come back into the right place.
#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>

#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

/// Every other blob is one byte, the number of an image. The test decodes it in Pillow's place.
struct Disguised {
  std::vector<Bytes> blobs;
  std::shared_ptr<const BlobTable> table;  // every other image is disguised

  Disguised() {
    std::vector<Blob> spans;
    for (size_t i = 0; i < Images::kCount; ++i) {
      blobs.push_back(i % 2 == 0 ? Images::all().jpegs[i] : Bytes{static_cast<uint8_t>(i)});
    }
    for (const Bytes& bytes : blobs) spans.push_back({nullptr, bytes.data(), bytes.size()});
    table = BlobTable::of_memory(spans);
  }
  static void finish(Pipeline& pipeline, PythonJob& job) {
    const size_t image = job.bytes.at(0);
    pipeline.finish(job, rgbx_image(Images::all().pixels[image].data(), Images::all().sizes[image]), 1000);
  }
};

}  // namespace

TEST_CASE("what is not a plain JPEG goes to Pillow and comes out as if it were one") {
  const Disguised disguised;
  const Rows rows = some_rows(24);
  const Bytes truth = expected(training(0), rows);
  for (const int threads : {0, 1, 3}) {
    CAPTURE(threads);
    Pipeline pipeline(training(threads));
    std::vector<std::thread> lane;
    for (int i = 0; i < 2 && threads > 0; ++i) {
      lane.emplace_back([&] {
        while (!pipeline.closed())
          if (auto job = pipeline.next_pillow_job(kLong)) Disguised::finish(pipeline, *job);
      });
    }
    for (int i = 0; i < 5; ++i) {
      const auto batch = submit(pipeline, disguised.table, rows);
      if (threads == 0) {
        while (pipeline.run_one()) {
        }
        CHECK(pipeline.pillow_jobs_waiting() == 12);
        while (auto job = pipeline.next_pillow_job(0ms)) Disguised::finish(pipeline, *job);
      }
      REQUIRE(pipeline.wait(*batch, kLong));
      CHECK(batch->take_failures().empty());
      CHECK(contents(pipeline, *batch) == truth);
    }
    const auto stats = pipeline.stats();
    CHECK(stats.back().stage == "pillow");
    CHECK(stats.back().items == 60);
    CHECK(stats.back().busy_ns == 60'000);
    pipeline.close();
    for (std::thread& thread : lane) thread.join();
  }
}

TEST_CASE("a batch knows the sizes of its images, decoded natively or by Pillow") {
  const Disguised disguised;
  Pipeline pipeline(training(1));
  const auto batch = submit(pipeline, disguised.table, {5, 2, 4});
  auto job = pipeline.next_pillow_job(kLong);
  REQUIRE(job);
  Disguised::finish(pipeline, *job);
  REQUIRE(pipeline.wait(*batch, kLong));
  const std::vector<Size>& sizes = Images::all().sizes;
  CHECK(batch->sizes == std::vector<Size>{sizes[5], sizes[2], sizes[4]});
}

TEST_CASE("Pillow may give gray levels") {
  const Disguised disguised;
  Pipeline pipeline(training(1));
  const auto colours = submit(pipeline, disguised.table, {1});
  auto job = pipeline.next_pillow_job(kLong);
  REQUIRE(job);
  const Bytes gray{7, 200, 3, 90, 255, 0};
  Bytes same;
  for (const uint8_t level : gray) same.insert(same.end(), {level, level, level, 0});
  pipeline.finish(*job, rgbx_image(same.data(), {3, 2}), 0);
  const auto levels = submit(pipeline, disguised.table, {1});
  job = pipeline.next_pillow_job(kLong);
  REQUIRE(job);
  pipeline.finish(*job, gray_image(gray.data(), {3, 2}), 0);
  REQUIRE(pipeline.wait(*colours, kLong));
  REQUIRE(pipeline.wait(*levels, kLong));
  CHECK(contents(pipeline, *levels) == contents(pipeline, *colours));
}

TEST_CASE("on request Pillow decodes every file") {
  PipelineOptions options = training(1);
  options.indices = true;
  Pipeline pipeline(std::move(options));
  const auto batch = submit(pipeline, Images::all().table, {3});
  auto job = pipeline.next_pillow_job(kLong);
  REQUIRE(job);
  CHECK(job->bytes == Images::all().jpegs[3]);
  pipeline.finish(*job, rgbx_image(Images::all().pixels[3].data(), Images::all().sizes[3]), 0);
  REQUIRE(pipeline.wait(*batch, kLong));
  CHECK(contents(pipeline, *batch) == expected(training(0), {3}));
}

TEST_CASE("Pillow's error is the sample's error") {
  const Disguised disguised;
  Pipeline pipeline(training(1));
  const auto batch = submit(pipeline, disguised.table, {0, 1});
  auto job = pipeline.next_pillow_job(kLong);
  REQUIRE(job);
  CHECK(job->sample == 1);
  CHECK(job->bytes == Bytes{1});
  CHECK(job->reason != "");
  CHECK_FALSE(pipeline.wait(*batch, 1ms));
  pipeline.fail(*job, "cannot identify image file");
  REQUIRE(pipeline.wait(*batch, kLong));
  const auto failures = batch->take_failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].sample == 1);
  CHECK(failures[0].stage == Stage::kDecode);
  CHECK(failures[0].reason == "cannot identify image file");
  CHECK_THROWS_AS(pipeline.fail(*job, "again"), std::logic_error);
  CHECK_THROWS_AS(Disguised::finish(pipeline, *job), std::logic_error);
  CHECK(batch->remaining == 0);
}

TEST_CASE("an image from Pillow that the recipe cannot take fails like any other") {
  const Disguised disguised;
  Pipeline pipeline(crops(0));
  const auto batch = submit(pipeline, disguised.table, {1, 3});
  while (pipeline.run_one()) {
  }
  const Bytes pixel(kPixelBytes);
  auto first = pipeline.next_pillow_job(0ms), second = pipeline.next_pillow_job(0ms);
  pipeline.finish(*first, rgbx_image(pixel.data(), {1, 1}), 0);
  pipeline.finish(*second, rgbx_image(nullptr, {0, 0}), 0);
  REQUIRE(pipeline.wait(*batch, 0ms));
  const auto failures = batch->take_failures();
  REQUIRE(failures.size() == 2);
  for (const Failure& failure : failures) CHECK(failure.stage == Stage::kPlan);
}

TEST_CASE("Pillow is not troubled with cancelled batches, nor its late answer written") {
  const Disguised disguised;
  Pipeline pipeline(training(0));
  auto memory = std::make_unique<Bytes>(2 * pipeline.options().strides.sample_bytes);
  const auto cancelled = submit(pipeline, disguised.table, {1, 3}, 1, memory->data());
  const auto wanted = submit(pipeline, disguised.table, {5});
  while (pipeline.run_one()) {
  }
  auto late = pipeline.next_pillow_job(0ms);
  REQUIRE(late);
  CHECK(late->batch == cancelled);
  pipeline.cancel(*cancelled);
  memory.reset();
  Disguised::finish(pipeline, *late);
  auto job = pipeline.next_pillow_job(0ms);
  REQUIRE(job);
  CHECK(job->batch == wanted);
  Disguised::finish(pipeline, *job);
  CHECK(pipeline.wait(*wanted, 0ms));
  CHECK(contents(pipeline, *wanted) == expected(training(0), {5}));
}

TEST_CASE("a job may outlive close") {
  const Disguised disguised;
  Pipeline pipeline(training(1));
  const auto batch = submit(pipeline, disguised.table, {1});
  auto job = pipeline.next_pillow_job(kLong);
  REQUIRE(job);
  pipeline.close();
  Disguised::finish(pipeline, *job);
  CHECK(batch->remaining == 0);
  CHECK(contents(pipeline, *batch) == expected(training(0), {1}));
}

TEST_CASE("images over the limit are Pillow's to refuse") {
  PipelineOptions options = crops(0);
  const auto pixels_of = [](size_t i) { return int64_t{Images::all().sizes[i].width} * Images::all().sizes[i].height; };
  options.max_pixels = pixels_of(3);
  Pipeline pipeline(options);
  const auto batch = submit(pipeline, Images::all().table, {3, 8});
  while (pipeline.run_one()) {
  }
  REQUIRE(pixels_of(8) > pixels_of(3));
  CHECK(batch->remaining == 1);
  const auto job = pipeline.next_pillow_job(0ms);
  REQUIRE(job);
  CHECK(job->sample == 1);
  CHECK(job->reason == "more pixels than PIL.Image.MAX_IMAGE_PIXELS");
}

TEST_CASE("a job that Python could not go on with is done again") {
  const Disguised disguised;
  const Rows rows = some_rows(12);
  Pipeline pipeline(training(1));
  const auto batch = submit(pipeline, disguised.table, rows);
  for (int done = 0, put_back = 0; done < 6;) {
    auto job = pipeline.next_pillow_job(kLong);
    REQUIRE(job);
    if (put_back++ % 2 == 0) {
      pipeline.put_back(*job);
      pipeline.put_back(*job);  // no effect: the job was put back already
      CHECK_THROWS_AS(pipeline.fail(*job, "too late"), std::logic_error);
    } else {
      Disguised::finish(pipeline, *job);
      ++done;
    }
  }
  REQUIRE(pipeline.wait(*batch, kLong));
  CHECK(batch->take_failures().empty());
  CHECK(contents(pipeline, *batch) == expected(training(0), rows));
}

TEST_CASE("a device is handed to Pillow by its path") {
  for (const int threads : {0, 1}) {
    Pipeline pipeline(training(threads));
    const auto batch = submit(pipeline, table_of({"/dev/zero"}), {0});
    while (threads == 0 && pipeline.run_one()) {
    }
    auto job = pipeline.next_pillow_job(kLong);
    REQUIRE(job);
    CHECK(job->path == "/dev/zero");
    CHECK(job->bytes.empty());
    CHECK(job->reason == "a device");
    pipeline.finish(*job, rgbx_image(Images::all().pixels[0].data(), Images::all().sizes[0]), 1);
    REQUIRE(pipeline.wait(*batch, kLong));
    CHECK(contents(pipeline, *batch) == expected(training(0), {0}));
  }
}
