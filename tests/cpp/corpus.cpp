// Sends every file below a folder through the pipeline, several times over, for one output and for two views: for the
// sanitizers, on odd and broken files.
//
//     headrace_corpus FOLDER [THREADS]
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/pipeline/pipeline.h"
#include "core/pipeline/views/views_backend.h"

namespace {

using namespace headrace;
using namespace std::chrono_literals;

constexpr int kPasses = 4, kBatch = 24, kDepth = 3, kSide = 224;
constexpr size_t kWord = sizeof(uint32_t);  // a sample holds whole ones

std::shared_ptr<const BlobTable> files_below(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::string packed;
  std::vector<uint64_t> offsets;
  for (const std::string& path : paths) {
    offsets.push_back(packed.size());
    packed += path + '\0';
  }
  return BlobTable::of_files(packed, offsets);
}

/// RandomResizedCrop(224) and a flip to float32: 23 draws.
PipelineOptions training(int threads) {
  PipelineOptions options;
  options.recipe.steps = {{.kind = Step::Kind::kRandomResizedCrop,
                           .height = kSide,
                           .width = kSide,
                           .min_ratio = 3.0 / 4,
                           .max_ratio = 4.0 / 3},
                          {.kind = Step::Kind::kHorizontalFlip, .p = 0.5, .draw = 22}};
  options.recipe.draws = 23;
  options.recipe.output = {kSide, kSide};
  options.recipe.pass_order = PassOrder::kByReduction;
  options.strides = strides_of(Layout::kPlanar, 3, options.recipe.output, 4);
  options.lut.resize(3 * 256 * 4);
  for (size_t i = 0; i < 3 * 256; ++i) options.lut[4 * i] = static_cast<uint8_t>(i);
  options.threads = threads;
  options.max_pixels = 89'478'485;
  return options;
}

/// The same crop, and the whole file as 40 by 30 bytes, from one decode.
PipelineOptions two_views(int threads) {
  PipelineOptions options = training(threads);
  SampleOptions whole = options;
  whole.recipe.steps = {{.kind = Step::Kind::kResize, .height = 30, .width = 40}};
  whole.recipe.output = {40, 30};
  whole.strides = strides_of(Layout::kChannelsLast, 3, whole.recipe.output, 1);
  whole.lut.resize(3 * 256);
  for (size_t i = 0; i < 3 * 256; ++i) whole.lut[i] = static_cast<uint8_t>(i);
  options.backend =
      std::make_shared<ViewsBackend>(std::vector<SampleOptions>{options, whole}, false, kernels(), options.slots_kept);
  return options;
}

class Feeder {
 public:
  explicit Feeder(int64_t files) : rows_(static_cast<size_t>(files)) {
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = static_cast<int64_t>(i);
  }

  void shuffle() { std::shuffle(rows_.begin(), rows_.end(), random_); }
  size_t files() const { return rows_.size(); }

  std::shared_ptr<Batch> submit(Pipeline& pipeline, const std::shared_ptr<const BlobTable>& table, size_t first) {
    const size_t last = std::min(first + kBatch, rows_.size());
    std::vector<int64_t> rows(rows_.begin() + static_cast<ptrdiff_t>(first),
                              rows_.begin() + static_cast<ptrdiff_t>(last));
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    std::vector<double> draws;
    for (size_t sample = 0; sample < rows.size(); ++sample) {
      for (int k = 0; k < 23; ++k) {
        const double u = unit(random_);
        draws.push_back(k >= 20 ? u : k % 2 == 0 ? 0.08 + 0.92 * u : 0.75 + 0.58 * u);
      }
    }
    return pipeline.submit(table, std::move(rows), std::move(draws), {});
  }

 private:
  std::vector<int64_t> rows_;
  std::mt19937_64 random_{1};
};

int run(const std::string& folder, const PipelineOptions& options) {
  const auto table = files_below(folder);
  if (table->size() == 0) {
    std::fprintf(stderr, "headrace_corpus: no files below %s\n", folder.c_str());
    return 2;
  }
  Pipeline pipeline(options);
  std::atomic<int> at_pillow{0};
  std::thread lane([&] {
    while (!pipeline.closed()) {
      if (auto job = pipeline.next_pillow_job(1s)) {
        ++at_pillow;
        pipeline.fail(*job, "Pillow is not here");
      }
    }
  });

  std::map<std::string, int> failures;
  uint64_t checksum = 0;  // of all bytes
  Feeder feeder(table->size());
  for (int pass = 0; pass < kPasses; ++pass) {
    feeder.shuffle();
    std::deque<std::shared_ptr<Batch>> flying;
    for (size_t next = 0; next < feeder.files() || !flying.empty();) {
      while (next < feeder.files() && flying.size() < kDepth) {
        flying.push_back(feeder.submit(pipeline, table, next));
        next += kBatch;
      }
      const std::shared_ptr<Batch> batch = flying.front();
      flying.pop_front();
      if (!pipeline.wait(*batch, 600s)) {
        std::fprintf(stderr, "headrace_corpus: a batch did not end\n");
        std::abort();
      }
      std::vector<bool> made(static_cast<size_t>(batch->size()), true);
      for (const Failure& failure : batch->take_failures()) {
        ++failures[stage_name(failure.stage)];
        made[static_cast<size_t>(failure.sample)] = false;
      }
      const size_t bytes = pipeline.options().strides.sample_bytes;
      for (size_t sample = 0; sample < made.size(); ++sample) {
        if (!made[sample]) continue;
        for (size_t i = sample * bytes; i < (sample + 1) * bytes; i += kWord) {
          uint32_t word = 0;
          std::memcpy(&word, &batch->memory[i], kWord);
          checksum = (checksum ^ word) * 0x9E3779B97F4A7C15;
        }
      }
    }
  }
  pipeline.close();
  lane.join();
  std::printf("%lld files, %d passes, %d threads: %d left to Pillow", static_cast<long long>(table->size()), kPasses,
              options.threads, at_pillow.load());
  for (const auto& [stage, count] : failures) std::printf("; %s: %d failures", stage.c_str(), count);
  std::printf("; checksum %016llx\n", static_cast<unsigned long long>(checksum));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: headrace_corpus FOLDER [THREADS]\n");
    return 2;
  }
  try {
    const int threads = argc == 3 ? std::max(1, std::atoi(argv[2])) : 4;
    const int one_output = run(argv[1], training(threads));
    return std::max(one_output, run(argv[1], two_views(threads)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "headrace_corpus: %s\n", error.what());
    return 1;
  }
}
