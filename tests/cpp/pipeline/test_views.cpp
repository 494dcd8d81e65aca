// Several views of one decode: each equals what its own pipeline makes of the same draws.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/pipeline/views/views_backend.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

void shift(std::vector<Step>& steps, int by) {
  for (Step& step : steps) {
    step.draw += by;
    for (auto& branch : step.branches) shift(branch, by);
  }
}

/// A crop of bytes, a training view and one with effects and an erased box. Each has draws of its own.
struct Views {
  Views() : alone{crops(0), training(0), retouched(0)} {
    int draws = 0;
    for (const PipelineOptions& one : alone) draws += one.recipe.draws;
    int first = 0;
    for (const PipelineOptions& one : alone) {
      SampleOptions view = one;
      shift(view.recipe.steps, first);
      first += std::exchange(view.recipe.draws, draws);
      together.push_back(std::move(view));
    }
  }

  PipelineOptions options(int threads, const Kernels& chosen = kernels(), bool stacked = false) const {
    PipelineOptions options;
    options.recipe.draws = together.front().recipe.draws;
    options.backend = std::make_shared<ViewsBackend>(together, stacked, chosen, 3);
    options.kernels = &chosen;
    options.threads = threads;
    return options;
  }

  std::vector<double> draws(const Rows& rows, uint32_t seed = 1) const {
    std::vector<double> all;
    for (const int64_t row : rows) {
      for (const PipelineOptions& one : alone) {
        const auto its = draws_of({row}, one.recipe.draws, seed);
        all.insert(all.end(), its.begin(), its.end());
      }
    }
    return all;
  }

  std::shared_ptr<Batch> begin(Pipeline& pipeline, const std::shared_ptr<const BlobTable>& table, const Rows& rows,
                               uint32_t seed = 1, uint8_t* memory = nullptr) const {
    return pipeline.submit(table, rows, draws(rows, seed), {memory, 0});
  }

  GatherLayout layout() const {
    std::vector<size_t> bytes;
    for (const SampleOptions& view : together) bytes.push_back(view.strides.sample_bytes);
    return GatherLayout(bytes);
  }

  /// Compares a batch of these rows of Images::table with the pipelines of single views.
  void check(const Batch& batch, const Rows& rows, uint32_t seed = 1) const {
    const uint8_t* view = batch.memory;
    for (size_t i = 0; i < alone.size(); ++i) {
      CAPTURE(i);
      const size_t bytes = layout().row_bytes(i) * rows.size();
      CHECK(Bytes(view, view + bytes) == expected(alone[i], rows, seed));
      view += layout().column_bytes(i, rows.size());
    }
  }

  std::vector<PipelineOptions> alone;
  std::vector<SampleOptions> together;
};

/// The table of Images::pixels.
std::shared_ptr<const BlobTable> table_of_pixels() {
  const Images& images = Images::all();
  std::vector<std::shared_ptr<const BlobTable>> parts;
  for (size_t i = 0; i < Images::kCount; ++i) {
    const Size size = images.sizes[i];
    parts.push_back(BlobTable::of_pixels({images.pixels[i].data(), size, i % 2 == 0 ? kPixelBytes : 3,
                                          ptrdiff_t{size.width} * kPixelBytes, kPixelBytes, 1},
                                         0, 1));
  }
  return BlobTable::of_parts(std::move(parts));
}

}  // namespace

TEST_CASE("each view is what its own pipeline makes") {
  const Views views;
  const Rows rows = some_rows(3 * Images::kCount, 1);
  for (const int threads : {0, 1, 4}) {
    CAPTURE(threads);
    Pipeline pipeline(views.options(threads));
    for (const uint32_t seed : {1u, 2u, 3u}) {
      const auto batch = views.begin(pipeline, Images::all().table, rows, seed);
      REQUIRE(complete(pipeline, *batch));
      CHECK(batch->take_failures().empty());
      views.check(*batch, rows, seed);
    }
    CHECK(pipeline.slots() <= 3);
    CHECK(pipeline.stats().at(static_cast<size_t>(Clock::kRead)).items == 9 * Images::kCount);
  }
}

TEST_CASE("stacked views of a sample are one after another") {
  const Views views;
  const Rows rows = some_rows(2 * Images::kCount, 4);
  std::vector<Bytes> alone;
  for (const PipelineOptions& one : views.alone) alone.push_back(expected(one, rows, 4));
  Bytes all;
  for (size_t sample = 0; sample < rows.size(); ++sample) {
    for (size_t i = 0; i < alone.size(); ++i) {
      const auto bytes = static_cast<ptrdiff_t>(views.layout().row_bytes(i)), at = static_cast<ptrdiff_t>(sample);
      all.insert(all.end(), alone[i].begin() + at * bytes, alone[i].begin() + (at + 1) * bytes);
    }
  }
  for (const int threads : {0, 1, 4}) {
    CAPTURE(threads);
    Pipeline pipeline(views.options(threads, kernels(), true));
    const auto batch = views.begin(pipeline, Images::all().table, rows, 4);
    REQUIRE(complete(pipeline, *batch));
    CHECK(batch->take_failures().empty());
    CHECK(Bytes(batch->memory, batch->memory + all.size()) == all);
  }
}

TEST_CASE("every set of kernels makes the same views") {
  const Views views;
  const Rows rows = some_rows(Images::kCount);
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    const Kernels* set = kernels_named(name);
    if (set == nullptr) continue;
    CAPTURE(name);
    Pipeline pipeline(views.options(1, *set));
    const auto batch = views.begin(pipeline, Images::all().table, rows);
    REQUIRE(complete(pipeline, *batch));
    views.check(*batch, rows);
  }
}

TEST_CASE("pixels make the views that their JPEGs make, also in the caller's memory") {
  const Views views;
  const Rows rows = some_rows(Images::kCount);
  Pipeline pipeline(views.options(2));
  Bytes memory(views.layout().batch_bytes(rows.size()));
  const auto batch = views.begin(pipeline, table_of_pixels(), rows, 1, memory.data());
  REQUIRE(complete(pipeline, *batch));
  CHECK(batch->slot.empty());
  CHECK(batch->take_failures().empty());
  views.check(*batch, rows);
}

TEST_CASE("views of given plans are made in memory of their own") {
  const Views views;
  const Rows rows = some_rows(2 * Images::kCount, 3);
  Views planned;
  for (SampleOptions& view : planned.together) {
    view.recipe.steps.clear();
    view.recipe.draws = 0;
    view.recipe.erases = view.erased.empty() ? 0 : 1;
  }
  std::vector<GivenPlan> plans;
  for (const int64_t row : rows) {
    const Size size = Images::all().sizes[static_cast<size_t>(row)];
    for (const PipelineOptions& one : views.alone) {
      plans.push_back({resolve(one.recipe, draws_of({row}, one.recipe.draws).data(), size), size});
    }
  }
  std::vector<Bytes> memory;
  for (const SampleOptions& view : views.together) memory.emplace_back(view.strides.sample_bytes * rows.size());
  const auto begin = [&](Pipeline& pipeline, const std::vector<GivenPlan>& its_plans, size_t count) {
    BatchMemory to;
    for (size_t i = 0; i < count; ++i) to.views.push_back(memory[i].data());
    return pipeline.submit(Images::all().table, rows, {}, std::move(to), nullptr, its_plans);
  };
  for (const int threads : {0, 3}) {
    CAPTURE(threads);
    Pipeline pipeline(planned.options(threads));
    const auto batch = begin(pipeline, plans, memory.size());
    REQUIRE(complete(pipeline, *batch));
    CHECK(batch->take_failures().empty());
    for (size_t i = 0; i < memory.size(); ++i) {
      CAPTURE(i);
      CHECK(memory[i] == expected(views.alone[i], rows));
      std::fill(memory[i].begin(), memory[i].end(), uint8_t{0});
    }
  }
  Pipeline pipeline(planned.options(1));
  CHECK_THROWS_AS(begin(pipeline, plans, memory.size() - 1), std::invalid_argument);
  std::swap(plans[0], plans[1]);  // of another size
  CHECK_THROWS_AS(begin(pipeline, plans, memory.size()), std::invalid_argument);
  std::swap(plans[0], plans[1]);
  for (const Erased& wrong : {Erased{.box = {20, 0, 9, 2}}, Erased{.box = {0, 0, 2, 2}, .value = 1}}) {
    std::vector<GivenPlan> others = plans;
    others[2].plan.erased = {wrong};
    CHECK_THROWS_AS(begin(pipeline, others, memory.size()), std::invalid_argument);
  }
  plans.pop_back();
  CHECK_THROWS_AS(begin(pipeline, plans, memory.size()), std::invalid_argument);
  Pipeline stacked(planned.options(1, kernels(), true));
  CHECK_THROWS_AS(begin(stacked, plans, memory.size()), std::invalid_argument);
}

TEST_CASE("what Pillow decodes becomes every view") {
  const Views views;
  const Bytes number{3};  // no JPEG; the test decodes image 3 in Pillow's place
  const auto odd = BlobTable::of_memory({{nullptr, number.data(), number.size()}});
  const auto table = BlobTable::of_parts({Images::all().table, odd});
  Pipeline pipeline(views.options(1));
  const Rows rows{2, Images::kCount, 5}, shown{2, 3, 5};
  const auto batch = pipeline.submit(table, rows, views.draws(shown), {});
  auto job = pipeline.next_pillow_job(kLong);
  REQUIRE(job);
  pipeline.finish(*job, rgbx_image(Images::all().pixels[3].data(), Images::all().sizes[3]), 1);
  REQUIRE(complete(pipeline, *batch));
  CHECK(batch->take_failures().empty());
  views.check(*batch, shown);
}

TEST_CASE("a repair writes every view of the samples that it replaces") {
  const Views views;
  const TemporaryFolder folder;
  const auto& jpegs = Images::all().jpegs;
  const std::string gone = folder.path("gone");
  const auto table = table_of({folder.file("a", jpegs[0]), gone, folder.file("c", jpegs[2]), gone, gone});
  Pipeline pipeline(views.options(2));
  const auto batch = views.begin(pipeline, table, {0, 1, 2, 3, 4});
  REQUIRE(complete(pipeline, *batch));
  REQUIRE(batch->take_failures().size() == 3);
  const Rows rows{8, 9, 7};
  const auto repair = pipeline.repair(*batch, {3, 1, 4}, Images::all().table, rows, views.draws(rows));
  REQUIRE(complete(pipeline, *repair));
  CHECK(repair->take_failures().empty());
  views.check(*batch, {0, 9, 2, 8, 7});
}

TEST_CASE("a sample fails alone where one of its views cannot be made") {
  const Bytes small(8 * 8 * 3, 7);
  const auto table =
      BlobTable::of_parts({Images::all().table, BlobTable::of_pixels({small.data(), {8, 8}, 3, 24, 3, 1}, 0, 1)});
  const Views views;
  Pipeline pipeline(views.options(1));
  const auto batch = pipeline.submit(table, {0, Images::kCount}, views.draws({0, 1}), {});
  REQUIRE(complete(pipeline, *batch));
  const auto failures = batch->take_failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].sample == 1);
  CHECK(failures[0].stage == Stage::kPlan);
}

TEST_CASE("cancelled batches are left alone, and slots are reused") {
  const Views views;
  Pipeline pipeline(views.options(3));
  Bytes memory(views.layout().batch_bytes(64));
  constexpr Bytes::value_type kAfter{0xA5};
  for (int round = 0; round < 20; ++round) {
    const auto dropped = views.begin(pipeline, Images::all().table, some_rows(64), 1, memory.data());
    const auto kept = views.begin(pipeline, Images::all().table, some_rows(5, round));
    pipeline.cancel(*dropped);
    std::fill(memory.begin(), memory.end(), kAfter);  // no thread may write after cancel() has returned
    REQUIRE(complete(pipeline, *kept));
    views.check(*kept, some_rows(5, round));
    CHECK(std::all_of(memory.begin(), memory.end(), [&](auto byte) { return byte == kAfter; }));
  }
}

TEST_CASE("views that cannot share a pipeline are refused") {
  CHECK_THROWS_AS(ViewsBackend({}, false, kernels(), 1), std::invalid_argument);
  CHECK_THROWS_AS(ViewsBackend({crops(0), training(0)}, false, kernels(), 1), std::invalid_argument);
  SampleOptions calls = crops(0);
  calls.recipe.steps.push_back({.kind = Step::Kind::kCall});
  CHECK_THROWS_AS(ViewsBackend({calls}, false, kernels(), 1), std::invalid_argument);
}
