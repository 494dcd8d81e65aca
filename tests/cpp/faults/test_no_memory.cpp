// Every allocation of a pipeline fails, one after the other: an exception or a failed sample is reported, nothing
// crashes, hangs or is wrong, and the next batch is as if nothing had happened.
#include <doctest/doctest.h>

#include <algorithm>
#include <new>
#include <optional>
#include <string>

#include "faults/failing_memory.h"
#include "support/pipeline_samples.h"
#include "support/sanitizers.h"

using namespace headrace;
using namespace headrace::test;
using namespace std::chrono_literals;

namespace {

constexpr int kMost = 100000;  // allocations of a run; a bound for a test that would not end

/// What a pipeline makes its batches of.
struct Case {
  PipelineOptions options;
  std::shared_ptr<const BlobTable> table;
  Rows rows = some_rows(Images::kCount);
  Bytes wanted;         // the bytes of a batch
  bool learns = false;  // where the rows of the JPEGs begin
  bool closes = false;  // the pipeline is destroyed while allocations fail
};

/// Does what Python's thread does for a file that is not a plain JPEG. Without memory it tries again.
void serve_python(Pipeline& pipeline) {
  try {
    std::optional<PythonJob> job = pipeline.next_pillow_job(0ms);
    if (!job) return;
    const auto row = static_cast<size_t>(job->batch->rows[static_cast<size_t>(job->sample)]);
    pipeline.finish(*job, rgbx_image(Images::all().pixels[row].data(), Images::all().sizes[row]), 0);
  } catch (const std::bad_alloc&) {
  }
}

/// Waits for a batch as the consumer does. False: it took too long.
bool complete_with_python(Pipeline& pipeline, const Batch& batch) {
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  while (std::chrono::steady_clock::now() < deadline) {
    if (pipeline.options().threads == 0) pipeline.run_one();
    serve_python(pipeline);
    if (pipeline.wait(batch, pipeline.options().threads == 0 ? 0ms : 1ms)) return true;
  }
  return false;
}

/// Checks that each sample has the bytes that it must have, or has failed for want of memory.
void check_batch(const Pipeline& pipeline, Batch& batch, const Bytes& wanted) {
  const size_t each = pipeline.options().strides.sample_bytes;
  std::vector<bool> failed(static_cast<size_t>(batch.size()), false);
  for (const Failure& one : batch.take_failures()) {
    CHECK(one.os_errno == ENOMEM);
    CHECK(one.reason == kNoMemory);
    failed[static_cast<size_t>(one.sample)] = true;
  }
  CHECK(batch.broken().empty());
  const Bytes made = contents(pipeline, batch);
  for (size_t i = 0; i < failed.size(); ++i) {
    if (failed[i]) continue;
    const auto from = static_cast<ptrdiff_t>(i * each), to = static_cast<ptrdiff_t>((i + 1) * each);
    CHECK(std::equal(made.begin() + from, made.begin() + to, wanted.begin() + from));
  }
}

/// Makes a batch while allocations fail, and then another one. Returns whether an allocation failed.
bool run(const Case& one, int first, int count) {
  const auto points = one.learns ? std::make_shared<EntryPoints>(size_t{1} << 20) : nullptr;
  std::optional<Pipeline> pipeline;
  std::shared_ptr<Batch> batch;
  bool failed = false;
  {
    std::optional<SoundMemory> sound(std::in_place);
    PipelineOptions options = one.options;
    Rows rows = one.rows;
    std::vector<double> draws = draws_of(rows, options.recipe.draws);
    FailingMemory failing(first, count);
    sound.reset();
    bool ended = true;
    try {
      pipeline.emplace(std::move(options));
      batch = pipeline->submit(one.table, std::move(rows), std::move(draws), {nullptr, 0}, points);
      ended = complete_with_python(*pipeline, *batch);
      if (one.closes) pipeline.reset();
    } catch (const std::bad_alloc&) {
      if (one.closes) pipeline.reset();
    }
    sound.emplace();
    REQUIRE(ended);
    failed = failing.failed() > 0;
  }
  if (!pipeline) return failed;
  if (batch != nullptr) check_batch(*pipeline, *batch, one.wanted);
  const auto next =
      pipeline->submit(one.table, one.rows, draws_of(one.rows, one.options.recipe.draws), {nullptr, 0}, points);
  REQUIRE(complete_with_python(*pipeline, *next));
  CHECK(next->take_failures().empty());
  CHECK(contents(*pipeline, *next) == one.wanted);
  return failed;
}

void fail_each(Case one, int count) {
  {
    Pipeline pipeline(one.options);
    const auto batch = submit(pipeline, one.table, one.rows);
    REQUIRE(complete_with_python(pipeline, *batch));
    REQUIRE(batch->take_failures().empty());
    one.wanted = contents(pipeline, *batch);
  }
  int first = 0;
  while (first < kMost && run(one, first, count)) first += kCaseStep;
  CHECK(first > 30);  // allocations did fail
  CHECK(first < kMost);
}

}  // namespace

TEST_CASE("each allocation fails once: crops of images in memory") {
  for (const int threads : {0, 2}) fail_each({.options = crops(threads), .table = Images::all().table}, 1);
}

TEST_CASE("each allocation fails once: training from files") {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (size_t i = 0; i < Images::kCount; ++i) paths.push_back(folder.file(std::to_string(i), Images::all().jpegs[i]));
  for (const int threads : {0, 2}) fail_each({.options = training(threads), .table = table_of(paths)}, 1);
}

TEST_CASE("each allocation fails once: effects") {
  for (const int threads : {0, 2}) fail_each({.options = retouched(threads), .table = Images::all().table}, 1);
}

TEST_CASE("each allocation fails once: the rows of JPEGs are learned, and used by the next batch") {
  for (const int threads : {0, 2})
    fail_each({.options = crops(threads), .table = Images::all().table, .learns = true}, 1);
}

TEST_CASE("each allocation fails once: a pipeline is destroyed") {
  for (const int threads : {0, 2})
    fail_each({.options = crops(threads), .table = Images::all().table, .closes = true}, 1);
}

TEST_CASE("three allocations in a row fail: the report of a failure has no memory either") {
  for (const int threads : {0, 2}) fail_each({.options = retouched(threads), .table = Images::all().table}, 3);
}
