// Makes the samples that the tests of the pipeline share.
#include "support/pipeline_samples.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <utility>

#include "support/jpeg_samples.h"

namespace headrace::test {
namespace {

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
  options.strides = strides_of(Layout::kPlanar, 3, recipe.output, static_cast<int>(lut.size() / (3 * 256)));
  options.recipe = std::move(recipe);
  options.lut = std::move(lut);
  options.threads = threads;
  return options;
}

}  // namespace

const Images& Images::all() {
  static const Images images;
  return images;
}

Images::Images() {
  std::vector<Blob> spans;
  for (int i = 0; i < kCount; ++i) {
    const Size size{33 + 11 * i, 61 + 7 * (i % 5)};
    const bool gray = i == 7;
    const int h = gray ? 1 : 1 + i % 2, v = gray ? 1 : 1 + i / 2 % 2;
    sizes.push_back(size);
    jpegs.push_back(make_jpeg({.width = size.width,
                               .height = size.height,
                               .components = gray ? 1 : 3,
                               .h = {h, 1, 1},
                               .v = {v, 1, 1},
                               .progressive = i == 5}));
    pixels.push_back(decode_whole(jpegs.back()));
  }
  for (const Bytes& jpeg : jpegs) spans.push_back({nullptr, jpeg.data(), jpeg.size()});
  table = BlobTable::of_memory(spans);
}

PipelineOptions crops(int threads) {
  Step crop{.kind = Step::Kind::kRandomCrop, .height = 20, .width = 24};
  return options_of({{crop}, 2, {24, 20}}, identity_lut(), threads);
}

PipelineOptions training(int threads) {
  Step crop{.kind = Step::Kind::kRandomResizedCrop, .height = 32, .width = 32, .min_ratio = 0.75, .max_ratio = 4.0 / 3};
  Step flip{.kind = Step::Kind::kHorizontalFlip, .p = 0.5, .draw = 22};
  return options_of({{crop, flip}, 23, {32, 32}}, float_lut(), threads);
}

PipelineOptions retouched(int threads) {
  using Kind = Step::Kind;
  const auto effect = [](Effect::Kind does, int draw) {
    return std::vector<Step>{{.kind = Kind::kEffect, .effect = does, .draw = draw}};
  };
  const Step early{.kind = Kind::kWhen, .p = 0.5, .draw = 0, .branches = {effect(Effect::Kind::kEqualize, 0)}};
  const Step resize{.kind = Kind::kResize, .height = 40, .width = 36};
  const Step colours{.kind = Kind::kShuffled,
                     .draw = 1,
                     .branches = {effect(Effect::Kind::kBrightness, 2), effect(Effect::Kind::kContrast, 3),
                                  effect(Effect::Kind::kSaturation, 4), effect(Effect::Kind::kHue, 5)}};
  const Step crop{.kind = Kind::kRandomCrop, .height = 20, .width = 24, .draw = 6};
  const Step flip{.kind = Kind::kHorizontalFlip, .p = 0.5, .draw = 8};
  const Step erase{.kind = Kind::kErase, .p = 0.7, .draw = 9};
  PipelineOptions options =
      options_of({{early, resize, colours, crop, flip, erase}, 32, {24, 20}}, float_lut(), threads);
  for (uint8_t byte = 0; byte < 12; ++byte) options.erased.push_back(static_cast<uint8_t>(0x3C + byte));
  return options;
}

std::vector<double> draws_of(const Rows& rows, int columns, uint32_t seed) {
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

Rows some_rows(int count, int first) {
  Rows rows;
  for (int i = 0; i < count; ++i) rows.push_back((first + i * 5) % Images::kCount);
  return rows;
}

std::shared_ptr<Batch> submit(Pipeline& pipeline, const std::shared_ptr<const BlobTable>& table, const Rows& rows,
                              uint32_t seed, uint8_t* memory) {
  return pipeline.submit(table, rows, draws_of(rows, pipeline.options().recipe.draws, seed), {memory, 0});
}

bool complete(Pipeline& pipeline, const Batch& batch) {
  if (pipeline.options().threads == 0) {
    while (pipeline.run_one()) {
    }
  }
  return pipeline.wait(batch, kLong);
}

Bytes contents(const Pipeline& pipeline, const Batch& batch) {
  const size_t bytes = pipeline.options().strides.sample_bytes * static_cast<size_t>(batch.size());
  return {batch.memory, batch.memory + bytes};
}

Bytes expected(PipelineOptions options, const Rows& rows, uint32_t seed) {
  options.threads = 0;
  Pipeline pipeline(std::move(options));
  const auto batch = submit(pipeline, Images::all().table, rows, seed);
  REQUIRE(complete(pipeline, *batch));
  REQUIRE(batch->take_failures().empty());
  return contents(pipeline, *batch);
}

Gate::Gate(const TemporaryFolder& folder) : path_(folder.path("gate")) { REQUIRE(mkfifo(path_.c_str(), 0600) == 0); }

void Gate::open(const Bytes& bytes) const {
  int pipe = -1;  // a non-blocking open fails until there is a reader; a failing test must not hang
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  while ((pipe = ::open(path_.c_str(), O_WRONLY | O_NONBLOCK)) < 0) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::yield();
  }
  fcntl(pipe, F_SETFL, O_WRONLY);
  CHECK(write(pipe, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  close(pipe);
}

std::shared_ptr<const BlobTable> table_of(const std::vector<std::string>& paths) {
  std::string packed;
  std::vector<uint64_t> offsets;
  for (const std::string& path : paths) {
    offsets.push_back(packed.size());
    packed += path + '\0';
  }
  return BlobTable::of_files(packed, offsets);
}

GatedFiles::GatedFiles() {
  std::vector<std::string> paths;
  for (size_t i = 0; i < Images::kCount; ++i) paths.push_back(folder.file(std::to_string(i), Images::all().jpegs[i]));
  paths.push_back(gate.path());
  table = table_of(paths);
}

}  // namespace headrace::test
