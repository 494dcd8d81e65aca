// PNGs in a pipeline: the thread that takes one decodes it, and the sample is that of the same pixels in a JPEG.
#include <doctest/doctest.h>

#include <algorithm>

#include "support/pipeline_samples.h"
#include "support/png_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

PngBytes png_of_image(size_t number) {
  const auto [width, height] = Images::all().sizes[number];
  const Bytes& pixels = Images::all().pixels[number];
  PngSample sample{.width = width, .height = height};
  for (size_t i = 0; i < pixels.size(); i += kPixelBytes) {
    if (i / kPixelBytes % static_cast<size_t>(width) == 0) sample.rows.push_back(0);
    sample.rows.insert(sample.rows.end(), &pixels[i], &pixels[i] + 3);
  }
  return png_of(sample);
}

/// Every other image of Images::table as a PNG.
struct Mixed {
  std::vector<Bytes> blobs;
  std::shared_ptr<const BlobTable> table;

  Mixed() {
    for (size_t i = 0; i < Images::kCount; ++i) {
      blobs.push_back(i % 2 == 0 ? Images::all().jpegs[i] : png_of_image(i));
    }
    std::vector<Blob> spans;
    for (const Bytes& bytes : blobs) spans.push_back({nullptr, bytes.data(), bytes.size()});
    table = BlobTable::of_memory(spans);
  }
};

}  // namespace

TEST_CASE("PNG is the sample that a JPEG of its pixels is") {
  const Mixed mixed;
  const Rows rows = some_rows(24);
  for (PipelineOptions (*recipe)(int) : {training, crops, retouched}) {
    const Bytes truth = expected(recipe(0), rows);
    for (const int threads : {0, 1, 3}) {
      Pipeline pipeline(recipe(threads));
      const auto batch = submit(pipeline, mixed.table, rows);
      REQUIRE(complete(pipeline, *batch));
      CHECK(contents(pipeline, *batch) == truth);
      CHECK_FALSE(pipeline.next_pillow_job(0ms));
    }
  }
}

TEST_CASE("a damaged PNG goes to Pillow with its bytes") {
  Mixed mixed;
  mixed.blobs[1][mixed.blobs[1].size() - 20] ^= 1;
  Pipeline pipeline(training(1));
  const auto batch = submit(pipeline, mixed.table, {1});
  const auto job = pipeline.next_pillow_job(kLong);
  REQUIRE(job);
  CHECK(job->reason == "PNG with a wrong checksum");
  CHECK(job->bytes == mixed.blobs[1]);
}

TEST_CASE("a file of more pixels than are allowed goes to Pillow") {
  const Mixed mixed;
  PipelineOptions options = training(1);
  options.max_pixels = 1;
  Pipeline pipeline(std::move(options));
  const auto batch = submit(pipeline, mixed.table, {1});
  const auto job = pipeline.next_pillow_job(kLong);
  REQUIRE(job);
  CHECK(job->reason == "more pixels than PIL.Image.MAX_IMAGE_PIXELS");
}
