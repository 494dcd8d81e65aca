// The pipeline: the right bytes from any number of threads, and calm when batches are cancelled, closed, kept or
// forked.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "../../csrc/core/pipeline.h"
#include "in_child.h"
#include "jpeg_samples.h"
#include "temporary_folder.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;
using Bytes = std::vector<uint8_t>;
using Rows = std::vector<int64_t>;

namespace {

constexpr auto kLong = 60s;  // that something may take which must not take long

/// Small JPEGs of many sizes and samplings, in memory and as files.
struct Images {
  static const Images& all() {
    static const Images images;
    return images;
  }

  static constexpr int kCount = 12;
  std::vector<Size> sizes;
  std::vector<Bytes> jpegs, pixels;  // pixels: RGBX
  std::shared_ptr<const BlobTable> table;

 private:
  Images() {
    std::vector<Blob> spans;
    for (int i = 0; i < kCount; ++i) {
      const Size size{33 + 11 * i, 61 + 7 * (i % 5)};
      const int h = 1 + i % 2, v = 1 + i / 2 % 2;
      sizes.push_back(size);
      jpegs.push_back(make_jpeg({.width = size.width,
                                 .height = size.height,
                                 .components = i == 7 ? 1 : 3,
                                 .h = {h, 1, 1},
                                 .v = {v, 1, 1},
                                 .progressive = i == 5}));
      pixels.push_back(decode_whole(jpegs.back()));
    }
    for (const Bytes& jpeg : jpegs) spans.push_back({nullptr, jpeg.data(), jpeg.size()});
    table = BlobTable::of_memory(spans);
  }
};

Bytes identity_lut() {
  Bytes lut(3 * 256);
  for (size_t i = 0; i < lut.size(); ++i) lut[i] = static_cast<uint8_t>(i);
  return lut;
}

Bytes float_lut() {
  std::vector<float> values(3 * 256);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 255.0f - 1.5f;
  Bytes lut(values.size() * sizeof(float));
  std::memcpy(lut.data(), values.data(), lut.size());
  return lut;
}

PipelineOptions options_of(Recipe recipe, Bytes lut, int threads) {
  PipelineOptions options;
  options.layout = planar(3, recipe.output, static_cast<int>(lut.size() / (3 * 256)));
  options.recipe = std::move(recipe);
  options.lut = std::move(lut);
  options.threads = threads;
  return options;
}

/// A crop of 24 by 20 drawn from columns 0 and 1, bytes as they are.
PipelineOptions crops(int threads) {
  Step crop{.kind = Step::Kind::kRandomCrop, .height = 20, .width = 24};
  return options_of({{crop}, 2, {24, 20}}, identity_lut(), threads);
}

/// The training recipe: RandomResizedCrop(32) and a flip, float32.
PipelineOptions training(int threads) {
  Step crop{.kind = Step::Kind::kRandomResizedCrop, .height = 32, .width = 32, .min_ratio = 0.75, .max_ratio = 4.0 / 3};
  Step flip{.kind = Step::Kind::kHorizontalFlip, .p = 0.5, .draw = 22};
  return options_of({{crop, flip}, 23, {32, 32}}, float_lut(), threads);
}

/// Draws that differ from sample to sample, and are the same every time.
std::vector<double> draws_of(const Rows& rows, int columns, uint32_t seed = 1) {
  std::vector<double> draws;
  for (const int64_t row : rows) {
    uint32_t random = seed * 2654435761u + static_cast<uint32_t>(row) * 40503u;
    for (int k = 0; k < columns; ++k) {
      random = random * 1664525u + 1013904223u;
      const double u = random * 0x1p-32;
      draws.push_back(columns == 23 && k < 20 ? (k % 2 == 0 ? 0.08 + 0.92 * u : 0.75 + 0.58 * u) : u);
    }
  }
  return draws;
}

Rows some_rows(int count, int first = 0) {
  Rows rows;
  for (int i = 0; i < count; ++i) rows.push_back((first + i * 5) % Images::kCount);
  return rows;
}

std::shared_ptr<Batch> submit(Pipeline& pipeline, const std::shared_ptr<const BlobTable>& table, const Rows& rows,
                              uint32_t seed = 1, uint8_t* memory = nullptr) {
  return pipeline.submit(table, rows, draws_of(rows, pipeline.options().recipe.draws, seed), memory);
}

/// Waits as the consumer does, doing the work where there are no threads.
bool complete(Pipeline& pipeline, const Batch& batch) {
  if (pipeline.options().threads == 0) {
    while (pipeline.run_one()) {
    }
  }
  return pipeline.wait(batch, kLong);
}

Bytes contents(const Pipeline& pipeline, const Batch& batch) {
  const size_t bytes = pipeline.options().layout.sample_bytes * static_cast<size_t>(batch.size());
  return {batch.memory, batch.memory + bytes};
}

/// What any pipeline has to deliver for these rows.
Bytes expected(PipelineOptions options, const Rows& rows, uint32_t seed = 1) {
  options.threads = 0;
  Pipeline pipeline(std::move(options));
  const auto batch = submit(pipeline, Images::all().table, rows, seed);
  REQUIRE(complete(pipeline, *batch));
  REQUIRE(batch->take_failures().empty());
  return contents(pipeline, *batch);
}

/// A named pipe: a worker that reads it is held until somebody writes.
class Gate {
 public:
  explicit Gate(const TemporaryFolder& folder) : path_(folder.path("gate")) {
    REQUIRE(mkfifo(path_.c_str(), 0600) == 0);
  }
  const std::string& path() const { return path_; }
  /// Lets the worker go on with these bytes; blocks until it is there.
  void open(const Bytes& bytes) const {
    std::ofstream to(path_, std::ios::binary);
    to.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

std::shared_ptr<const BlobTable> files(const std::vector<std::string>& paths) {
  std::string packed;
  std::vector<uint64_t> offsets;
  for (const std::string& path : paths) {
    offsets.push_back(packed.size());
    packed += path + '\0';
  }
  return BlobTable::of_files(packed, offsets);
}

/// Images as files, and a gate as row Images::kCount.
struct GatedFiles {
  TemporaryFolder folder;
  Gate gate{folder};
  std::shared_ptr<const BlobTable> table;

  GatedFiles() {
    std::vector<std::string> paths;
    for (size_t i = 0; i < Images::kCount; ++i) paths.push_back(folder.file(std::to_string(i), Images::all().jpegs[i]));
    paths.push_back(gate.path());
    table = files(paths);
  }
};

/// "Pillow": blobs of one byte are the number of an image, decoded by whoever serves the lane.
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
  static void finish(Pipeline& pipeline, PillowJob& job) {
    const size_t image = job.bytes.at(0);
    pipeline.finish(job, Images::all().pixels[image].data(), Images::all().sizes[image], 1000);
  }
};

}  // namespace

TEST_CASE("a crop has the pixels of a full decode, planar and channels last") {
  const Images& images = Images::all();
  for (const bool last : {false, true}) {
    PipelineOptions options = crops(2);
    if (last) options.layout = channels_last(3, {24, 20}, 1);
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
  Bytes memory(5 * pipeline.options().layout.sample_bytes);
  const auto batch = submit(pipeline, Images::all().table, rows, 1, memory.data());
  REQUIRE(complete(pipeline, *batch));
  CHECK(memory == expected(training(0), rows));
  CHECK(batch->slot == nullptr);
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
  CHECK_THROWS_AS(pipeline.submit(table, {0}, {}, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(pipeline.submit(table, {Images::kCount}, draws_of({0}, 23), nullptr), std::out_of_range);
  CHECK_THROWS_AS(pipeline.submit(table, {-1}, draws_of({0}, 23), nullptr), std::out_of_range);
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

TEST_CASE("of a cancelled batch nothing more is begun, and the others are delivered") {
  const GatedFiles files;
  Pipeline pipeline(training(1));
  const auto held = submit(pipeline, files.table, {Images::kCount});
  auto cancelled = submit(pipeline, files.table, some_rows(1000));
  const auto wanted = submit(pipeline, files.table, some_rows(6));
  const std::weak_ptr<uint8_t> slot = cancelled->slot;
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

TEST_CASE("cancelling a batch in the caller's memory waits until nobody writes there") {
  const GatedFiles files;
  Pipeline pipeline(training(2));
  auto memory = std::make_unique<Bytes>(2 * pipeline.options().layout.sample_bytes);
  const auto batch = submit(pipeline, files.table, {Images::kCount, 1}, 1, memory->data());
  while (batch->remaining != 1) std::this_thread::yield();
  auto cancelling = std::async(std::launch::async, [&] { pipeline.cancel(*batch); });
  CHECK(cancelling.wait_for(50ms) == std::future_status::timeout);
  files.gate.open(Images::all().jpegs[0]);
  cancelling.get();
  memory.reset();  // a write from now on is one that AddressSanitizer sees
}

TEST_CASE("cancelling at any moment, in the caller's memory or in a slot") {
  Pipeline pipeline(training(3));
  for (int i = 0; i < 200; ++i) {
    Bytes memory(i % 2 == 0 ? 8 * pipeline.options().layout.sample_bytes : 0);
    const auto batch =
        submit(pipeline, Images::all().table, some_rows(8, i), 1, memory.empty() ? nullptr : memory.data());
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i * 10));
    pipeline.cancel(*batch);
  }
  const auto batch = submit(pipeline, Images::all().table, some_rows(8));
  CHECK(pipeline.wait(*batch, kLong));
  CHECK(contents(pipeline, *batch) == expected(training(0), some_rows(8)));
}

TEST_CASE("close wakes whoever waits, and the threads leave the rest of the batch") {
  const GatedFiles files;
  auto pipeline = std::make_unique<Pipeline>(training(2));
  Rows rows = some_rows(100'000);
  rows[0] = Images::kCount;
  const auto batch = submit(*pipeline, files.table, rows);
  auto waiting = std::async(std::launch::async, [&] { return pipeline->wait(*batch, kLong); });
  std::this_thread::sleep_for(10ms);
  pipeline->close();
  CHECK_FALSE(waiting.get());
  CHECK(pipeline->closed());
  CHECK_FALSE(pipeline->wait(*batch, kLong));
  files.gate.open(Images::all().jpegs[0]);
  pipeline.reset();
  CHECK(batch->remaining > 50'000);
  CHECK(batch.use_count() == 1);
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

TEST_CASE("what cannot be made is named, with stage and errno, and the rest is delivered") {
  const TemporaryFolder folder;
  const std::string small = folder.file("small", make_jpeg({.width = 10, .height = 50}));
  const std::string fine = folder.file("fine", Images::all().jpegs[2]);
  const auto table = files({fine, folder.path("missing"), small, folder.path(""), fine});
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
    const size_t bytes = pipeline.options().layout.sample_bytes;
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
      ::files({folder.file("a", Images::all().jpegs[0]), missing, folder.file("c", Images::all().jpegs[2]), missing});
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

  const size_t bytes = pipeline.options().layout.sample_bytes;
  const Bytes truth = expected(training(0), {0, 9, 2, 8});
  CHECK(Bytes(batch->memory, batch->memory + 4 * bytes) == truth);
  CHECK(repair->memory == batch->memory);
}

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
  pipeline.finish(*first, pixel.data(), {1, 1}, 0);
  pipeline.finish(*second, nullptr, {0, 0}, 0);
  REQUIRE(pipeline.wait(*batch, 0ms));
  const auto failures = batch->take_failures();
  REQUIRE(failures.size() == 2);
  for (const Failure& failure : failures) CHECK(failure.stage == Stage::kPlan);
}

TEST_CASE("Pillow is not troubled with cancelled batches, nor its late answer written") {
  const Disguised disguised;
  Pipeline pipeline(training(0));
  auto memory = std::make_unique<Bytes>(2 * pipeline.options().layout.sample_bytes);
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

TEST_CASE("slots are used again; who keeps batches gets more, unchanged even when the pipeline is gone") {
  std::vector<Lease> kept;
  std::vector<Bytes> copies;
  const size_t bytes = 4 * training(0).layout.sample_bytes;
  {
    Pipeline pipeline(training(2));
    for (int i = 0; i < 20; ++i) REQUIRE(complete(pipeline, *submit(pipeline, Images::all().table, some_rows(4, i))));
    CHECK(pipeline.slots() <= 3);
    for (int i = 0; i < 10; ++i) {
      const auto batch = submit(pipeline, Images::all().table, some_rows(4, i), static_cast<uint32_t>(i));
      REQUIRE(complete(pipeline, *batch));
      copies.push_back(contents(pipeline, *batch));
      kept.push_back(batch->slot);
    }
    CHECK(pipeline.slots() >= 10);
    for (int i = 0; i < 10; ++i) REQUIRE(complete(pipeline, *submit(pipeline, Images::all().table, some_rows(4, i))));
  }
  for (size_t i = 0; i < kept.size(); ++i) CHECK(std::memcmp(kept[i].get(), copies[i].data(), bytes) == 0);
}

TEST_CASE("a larger batch starts a larger ring, a smaller one stays in it") {
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
}

TEST_CASE("a forked child is told so, may drop what it inherited, and can make its own") {
  auto pipeline = std::make_unique<Pipeline>(training(2));
  const Rows rows = some_rows(6);
  const Bytes truth = expected(training(0), rows);
  auto done = submit(*pipeline, Images::all().table, rows);
  REQUIRE(complete(*pipeline, *done));
  Lease lease = done->slot;
  auto flying = submit(*pipeline, Images::all().table, some_rows(200));

  CHECK(in_child([&] {
    const auto refused = [](auto call) {
      try {
        call();
      } catch (const std::logic_error& error) {
        return std::string(error.what()).find("forked") != std::string::npos;
      }
      return false;
    };
    PillowJob job;
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

  REQUIRE(complete(*pipeline, *flying));  // the parent noticed nothing
  CHECK(contents(*pipeline, *done) == truth);
}

TEST_CASE("where not all threads can be started there is an error and no hang") {
  if (kAddressSanitizer || kThreadSanitizer) return;  // they need the memory that is taken away here
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
