// Samples of different sizes: each in memory of its own, which is reused.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/pipeline/batch/sized_slots.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

// All pixels of an image as bytes: (3, height, width), or (height, width, 3).
PipelineOptions whole(int threads, Layout layout) {
  PipelineOptions options;
  options.threads = threads;
  options.layout = layout;
  options.strides = strides_of(layout, 3, {}, 1);
  for (int channel = 0; channel < 3; ++channel) {
    for (int value = 0; value < 256; ++value) options.lut.push_back(static_cast<uint8_t>(value));
  }
  return options;
}

void check(const SizedSample& made, const Bytes& rgbx, Size size, Layout layout) {
  const Lease memory = made.memory.share();
  REQUIRE(memory != nullptr);
  CHECK(made.size == size);
  const OutputStrides strides = strides_of(layout, 3, size, 1);
  int different = 0;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const auto from = (static_cast<size_t>(y) * static_cast<size_t>(size.width) + static_cast<size_t>(x)) * 4;
        const ptrdiff_t to = c * strides.channel_stride + y * strides.row_stride + x * strides.pixel_stride;
        different += memory.get()[to] != rgbx[from + static_cast<size_t>(c)];
      }
    }
  }
  CHECK(different == 0);
}

}  // namespace

TEST_CASE("memory of a class of sizes is reused") {
  SizedSlots slots;
  Lease lease = slots.acquire(5000);
  std::memset(lease.get(), 1, 5000);
  const uint8_t* const address = lease.get();
  lease.reset();
  CHECK(slots.acquire(6000).get() == address);  // of the same class: up to 6144 bytes
  CHECK(slots.count() == 1);
  const Lease larger = slots.acquire(100000), empty = slots.acquire(0);
  CHECK(slots.count() == 3);
  slots.retire();
  CHECK(slots.count() == 2);  // those that are leased
  CHECK_THROWS_AS(slots.acquire(~size_t{0}), std::bad_alloc);
}

TEST_CASE("each sample has its own size") {
  const Images& images = Images::all();
  for (const Layout layout : {Layout::kPlanar, Layout::kChannelsLast}) {
    for (const int threads : {0, 1, 4}) {
      CAPTURE(threads);
      Pipeline pipeline(whole(threads, layout));
      for (int round = 0; round < 3; ++round) {
        const Rows rows = some_rows(Images::kCount, round);
        const auto batch = pipeline.submit(images.table, rows, {}, {});
        REQUIRE(complete(pipeline, *batch));
        CHECK(batch->take_failures().empty());
        for (size_t i = 0; i < rows.size(); ++i) {
          const auto row = static_cast<size_t>(rows[i]);
          check((*batch->sized)[i], images.pixels[row], images.sizes[row], layout);
        }
      }
    }
  }
}

TEST_CASE("a repair replaces a sample by one of another size") {
  const Images& images = Images::all();
  Pipeline pipeline(whole(1, Layout::kPlanar));
  const auto batch = pipeline.submit(images.table, {0, 1}, {}, {});
  REQUIRE(complete(pipeline, *batch));
  const auto repair = pipeline.repair(*batch, {1}, images.table, {2}, {});
  REQUIRE(complete(pipeline, *repair));
  check((*batch->sized)[0], images.pixels[0], images.sizes[0], Layout::kPlanar);
  check((*batch->sized)[1], images.pixels[2], images.sizes[2], Layout::kPlanar);
}

TEST_CASE("a caller cannot bring the memory") {
  Pipeline pipeline(whole(0, Layout::kPlanar));
  std::array<uint8_t, 4> memory{};
  CHECK_THROWS_AS(pipeline.submit(Images::all().table, {0}, {}, {memory.data(), 0}), std::logic_error);
}

TEST_CASE("samples outlive the pipeline") {
  const Images& images = Images::all();
  SizedSample kept;
  {
    Pipeline pipeline(whole(2, Layout::kPlanar));
    const auto batch = pipeline.submit(images.table, {3, 4}, {}, {});
    REQUIRE(complete(pipeline, *batch));
    SizedSample& made = (*batch->sized)[1];
    kept.memory.put(made.memory.take());
    kept.size = made.size;
  }
  check(kept, images.pixels[4], images.sizes[4], Layout::kPlanar);
}
