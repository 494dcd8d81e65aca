// Batches of clips of audio files, read by threads; other files wait for Python.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "audio/wav_samples.h"
#include "core/pipeline/clips/clip_backend.h"
#include "support/pipeline_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

constexpr int kSamples = 100;

PipelineOptions clips(int threads) {
  Clip clip;
  clip.samples = kSamples;
  clip.sample_rate = 8000;
  clip.place = Clip::Place::kDrawn;
  PipelineOptions options;
  options.recipe.draws = 1;
  options.recipe.output = {kSamples, 1};
  options.strides = strides_of(Layout::kPlanar, 1, options.recipe.output, sizeof(float));
  options.backend = std::make_shared<ClipBackend>(clip, 3);
  options.threads = threads;
  return options;
}

/// 8-bit files of one channel: all samples of file i have the value i / 128; and one that is no WAV, one that is not
/// there.
struct Files {
  Files() {
    std::string paths;
    std::vector<uint64_t> offsets;
    const auto add = [&](const std::string& path) {
      offsets.push_back(paths.size());
      paths += path + '\0';
    };
    for (int i = 0; i < 8; ++i) {
      const WavContent samples(static_cast<size_t>(60 * (i + 1)), static_cast<uint8_t>(128 + i));
      add(folder.file(std::to_string(i),
                      riff_of({wav_chunk("fmt ", wav_format(1, 1, 8000, 8)), wav_chunk("data", samples)})));
    }
    add(folder.file("text", {'t', 'e', 'x', 't'}));
    add(folder.path("missing"));
    table = BlobTable::of_files(std::move(paths), std::move(offsets));
  }
  TemporaryFolder folder;
  std::shared_ptr<const BlobTable> table;
};

const float* sample(const Batch& batch, int place) {
  return reinterpret_cast<const float*>(batch.memory) + place * kSamples;
}

}  // namespace

TEST_CASE("threads read clips straight into the batch") {
  const Files files;
  for (const int threads : {0, 1, 3}) {
    Pipeline pipeline(clips(threads));
    const Rows rows = {7, 0, 3, 3, 1, 5};
    const auto batch = pipeline.submit(files.table, rows, {0, 0.5, 0.9, 0.1, 0.999, 0}, {});
    while (threads == 0 && pipeline.run_one()) {
    }
    REQUIRE(pipeline.wait(*batch, kLong));
    CHECK(batch->take_failures().empty());
    for (int i = 0; i < batch->size(); ++i) {
      const int64_t length = std::min<int64_t>(kSamples, 60 * (rows[static_cast<size_t>(i)] + 1));
      CHECK(batch->sizes[static_cast<size_t>(i)].width == length);
      for (int s = 0; s < kSamples; ++s) {
        const float expected = s < length ? static_cast<float>(rows[static_cast<size_t>(i)]) / 128 : 0.0f;
        REQUIRE(sample(*batch, i)[s] == expected);
      }
    }
    CHECK(pipeline.bytes_read() > 0);
  }
}

TEST_CASE("other files wait for Python, and missing ones fail") {
  const Files files;
  Pipeline pipeline(clips(2));
  const auto batch = pipeline.submit(files.table, {8, 9, 2}, {0.25, 0, 0}, {});
  auto job = pipeline.next_pillow_job(std::chrono::seconds(60));
  REQUIRE(job.has_value());
  CHECK(job->sample == 0);
  CHECK(job->path == files.folder.path("text"));
  CHECK(job->reason == "not a WAV");
  std::vector<float> made(kSamples, 0.5f);
  const std::span<const uint8_t> elements(reinterpret_cast<const uint8_t*>(made.data()), kSamples * sizeof(float));
  CHECK_THROWS_AS(pipeline.finish_elements(*job, elements.first(8), 1, {3, 1}), std::invalid_argument);
  pipeline.finish_elements(*job, elements, 1, {3, 1});
  REQUIRE(pipeline.wait(*batch, kLong));
  CHECK(batch->sizes[0] == Size{3, 1});
  CHECK(sample(*batch, 0)[99] == 0.5f);
  const auto failures = batch->take_failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].sample == 1);
  CHECK(failures[0].os_errno == ENOENT);
}

TEST_CASE("a batch that is cancelled is not written any more") {
  const Files files;
  Pipeline pipeline(clips(2));
  std::vector<float> memory(64 * kSamples);
  for (int round = 0; round < 50; ++round) {
    const Rows rows(64, round % 9);
    const auto batch = pipeline.submit(files.table, rows, std::vector<double>(64, 0.5),
                                       {reinterpret_cast<uint8_t*>(memory.data()), 0});
    pipeline.cancel(*batch);
    std::fill(memory.begin(), memory.end(), 3.0f);  // a race, for TSan, if a thread still writes
  }
}
