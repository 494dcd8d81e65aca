// Texture channels in the pipeline: those of the bytes that the same recipe delivers, from any number of threads.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "core/kernels/textures/texture_scratch.h"
#include "support/pipeline_samples.h"
#include "textures/texture_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

PipelineOptions textured(int threads, Layout layout) {
  PipelineOptions options = crops(threads);
  const Size size = options.recipe.output;
  options.texture = std::make_shared<const Texture>(size, tables(size), kBands);
  options.strides = strides_of(layout, kTextureChannels, size, sizeof(float));
  return options;
}

/// The channels of the images in `bytes`, which the recipe without a texture made.
Bytes channels_of(const Bytes& bytes, const PipelineOptions& options) {
  const Size size = options.recipe.output;
  const OutputStrides& strides = options.strides;
  const size_t pixels = static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  const size_t count = bytes.size() / (3 * pixels);
  Bytes made(count * strides.sample_bytes);
  TextureScratch scratch(size);
  for (size_t i = 0; i < count; ++i) {
    for (size_t p = 0; p < pixels; ++p) {
      for (size_t c = 0; c < 3; ++c) scratch.pixels()[p * kPixelBytes + c] = bytes[(i * 3 + c) * pixels + p];
    }
    kernels_named("scalar")->make_texture(
        options.texture->view(), scratch.view(),
        {made.data() + i * strides.sample_bytes, strides.channel_stride, strides.row_stride, strides.pixel_stride});
  }
  return made;
}

}  // namespace

TEST_CASE("a pipeline makes the texture channels of its recipe's bytes") {
  const Rows rows = some_rows(2 * Images::kCount, 3);
  const Bytes bytes = expected(crops(0), rows, 9);
  for (const Layout layout : {Layout::kPlanar, Layout::kChannelsLast}) {
    for (const int threads : {0, 3}) {
      Pipeline pipeline(textured(threads, layout));
      const Bytes truth = channels_of(bytes, pipeline.options());
      const auto first = submit(pipeline, Images::all().table, rows, 9);
      const auto second = submit(pipeline, Images::all().table, rows, 9);
      for (const auto& batch : {first, second}) {
        REQUIRE(complete(pipeline, *batch));
        CHECK(batch->take_failures().empty());
        CHECK(contents(pipeline, *batch) == truth);
      }
    }
  }
}
