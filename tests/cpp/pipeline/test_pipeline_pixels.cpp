// Pixels in memory give the same results in the pipeline as the JPEGs that they were decoded from.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "gpu/batches/device_backend.h"
#include "support/checked_device.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

/// Images::pixels; every other one as three planes, and one of them as its JPEG.
struct PixelImages {
  PixelImages() {
    const Images& images = Images::all();
    std::vector<std::shared_ptr<const BlobTable>> parts;
    planes.resize(Images::kCount);
    for (size_t i = 0; i < Images::kCount; ++i) {
      const Size size = images.sizes[i];
      RawImage image{images.pixels[i].data(), size, 3, ptrdiff_t{size.width} * kPixelBytes, kPixelBytes, 1};
      if (i % 2 == 1) {
        const ptrdiff_t plane = ptrdiff_t{size.width} * size.height;
        for (size_t c = 0; c < 3; ++c) {
          for (size_t p = 0; p < static_cast<size_t>(plane); ++p) {
            planes[i].push_back(images.pixels[i][p * kPixelBytes + c]);
          }
        }
        image = {planes[i].data(), size, 3, size.width, 1, plane};
      }
      const bool encoded = i == 4;
      parts.push_back(encoded ? BlobTable::of_rows(images.table, {4}) : BlobTable::of_pixels(image, 0, 1));
    }
    table = BlobTable::of_parts(std::move(parts));
  }

  std::vector<Bytes> planes;
  std::shared_ptr<const BlobTable> table;
};

}  // namespace

TEST_CASE("pixels make what their JPEGs make") {
  const PixelImages images;
  const Rows rows = some_rows(2 * Images::kCount, 3);
  for (const auto& recipe : {crops(0), training(0), retouched(0)}) {
    const Bytes truth = expected(recipe, rows, 9);
    for (const int threads : {0, 3}) {
      CAPTURE(threads);
      PipelineOptions options = recipe;
      options.threads = threads;
      Pipeline pipeline(options);
      const auto batch = submit(pipeline, images.table, rows, 9);
      REQUIRE(complete(pipeline, *batch));
      CHECK(batch->take_failures().empty());
      CHECK(contents(pipeline, *batch) == truth);
    }
  }
}

TEST_CASE("pixels make on a device what their JPEGs make") {
  const PixelImages images;
  const Rows rows = some_rows(Images::kCount, 5);
  for (const auto& recipe : {crops(0), training(0), retouched(0)}) {
    const auto device = checked_device();
    PipelineOptions options = recipe;
    options.threads = 2;
    options.backend = std::make_shared<DeviceBackend>(device, options, 3);
    const size_t bytes = rows.size() * recipe.strides.sample_bytes;
    uint8_t* memory = device->allocate(bytes);
    {
      Pipeline pipeline(options);
      const auto batch = submit(pipeline, images.table, rows, 9, memory);
      REQUIRE(complete(pipeline, *batch));
      REQUIRE(batch->broken().empty());
      pipeline.hand_over(*batch, 0);
      CHECK(Bytes(memory, memory + bytes) == expected(recipe, rows, 9));
    }
    device->free(memory);
  }
}

TEST_CASE("an image that is too small fails alone, and says why") {
  const Bytes small(8 * 8 * 3, 7), large(40 * 40 * 3, 9);
  const auto table = BlobTable::of_parts({BlobTable::of_pixels({small.data(), {8, 8}, 3, 24, 3, 1}, 0, 1),
                                          BlobTable::of_pixels({large.data(), {40, 40}, 3, 120, 3, 1}, 0, 1)});
  Pipeline pipeline(crops(1));
  const auto batch = submit(pipeline, table, {1, 0, 1});
  REQUIRE(complete(pipeline, *batch));
  const auto failures = batch->take_failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].sample == 1);
  CHECK(failures[0].stage == Stage::kPlan);
  CHECK(failures[0].reason.find("Required crop size (20, 24)") == 0);
  CHECK(batch->memory[0] == 9);
}

TEST_CASE("a cancelled batch of pixels is left alone") {
  const PixelImages images;
  Pipeline pipeline(training(2));
  Bytes memory(64 * pipeline.options().strides.sample_bytes);
  constexpr Bytes::value_type kAfter{0xA5};
  for (int i = 0; i < 20; ++i) {
    const auto batch = submit(pipeline, images.table, some_rows(64), 1, memory.data());
    pipeline.cancel(*batch);
    std::fill(memory.begin(), memory.end(), kAfter);  // no thread may write after cancel() has returned
    REQUIRE(complete(pipeline, *submit(pipeline, images.table, some_rows(5))));
    CHECK(std::all_of(memory.begin(), memory.end(), [&](auto byte) { return byte == kAfter; }));
  }
}
