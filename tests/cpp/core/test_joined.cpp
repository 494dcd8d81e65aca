// Batches whose samples have different recipes of one output.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/pipeline/workers/joined_backend.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

/// training() without its flip: the same draws, whose last one is not read.
PipelineOptions unflipped(int threads) {
  PipelineOptions options = training(threads);
  options.recipe.steps.pop_back();
  return options;
}

PipelineOptions joined(int threads, SampleOptions first, SampleOptions second) {
  PipelineOptions options{first};
  options.threads = threads;
  auto backend = std::make_shared<JoinedBackend>(std::vector{std::move(first), std::move(second)}, kernels(), 3);
  options.recipe.draws = backend->draws();
  options.backend = std::move(backend);
  return options;
}

std::vector<double> numbered(const std::vector<double>& draws, const std::vector<int>& recipes) {
  const size_t each = draws.size() / recipes.size();
  std::vector<double> made;
  for (size_t i = 0; i < recipes.size(); ++i) {
    made.push_back(recipes[i]);
    made.insert(made.end(), draws.begin() + static_cast<std::ptrdiff_t>(i * each),
                draws.begin() + static_cast<std::ptrdiff_t>((i + 1) * each));
  }
  return made;
}

}  // namespace

TEST_CASE("each sample is made by its own recipe, and counted once") {
  const Rows rows = some_rows(12);
  const Bytes flipped = expected(training(0), rows), plain = expected(unflipped(0), rows);
  REQUIRE(flipped != plain);
  for (const int threads : {0, 3}) {
    Pipeline pipeline(joined(threads, training(0), unflipped(0)));
    const std::vector<int> recipes{0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 1, 1};
    const auto batch = pipeline.submit(Images::all().table, rows, numbered(draws_of(rows, 23), recipes), {});
    REQUIRE(complete(pipeline, *batch));
    const size_t bytes = pipeline.options().strides.sample_bytes;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Bytes& truth = recipes[i] == 0 ? flipped : plain;
      CHECK(std::memcmp(batch->memory + i * bytes, truth.data() + i * bytes, bytes) == 0);
    }
    CHECK(pipeline.stats().at(static_cast<size_t>(Clock::kRead)).items == 12);
    CHECK(pipeline.stats().at(static_cast<size_t>(Clock::kDecode)).items >= 1);
    const auto repair = pipeline.repair(*batch, {2}, Images::all().table, {5}, numbered(draws_of({5}, 23), {0}));
    REQUIRE(complete(pipeline, *repair));
    const Bytes other = expected(training(0), {5});
    CHECK(std::memcmp(batch->memory + 2 * bytes, other.data(), bytes) == 0);
  }
}

TEST_CASE("a recipe that there is not fails the sample") {
  Pipeline pipeline(joined(0, training(0), unflipped(0)));
  const Rows rows{0, 1};
  for (const int number : {-1, 2}) {
    const auto batch = pipeline.submit(Images::all().table, rows, numbered(draws_of(rows, 23), {number, 1}), {});
    REQUIRE(complete(pipeline, *batch));
    const auto failures = batch->take_failures();
    REQUIRE(failures.size() == 1);
    CHECK(failures[0].reason == "there is no recipe of this number");
  }
}

TEST_CASE("recipes of different outputs are refused") {
  CHECK_THROWS_AS(joined(0, training(0), crops(0)), std::invalid_argument);
  CHECK_THROWS_AS(JoinedBackend({}, kernels(), 1), std::invalid_argument);
}
