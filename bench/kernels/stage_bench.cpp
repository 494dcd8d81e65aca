// Times the stages of samples on one thread: the header, the plan with its tables, the decode, and the resize and
// store. Beside them the planes of the same boxes, as a GPU gets them, and with libjpeg-turbo's loops; and the ceiling:
// libjpeg-turbo decoding just the same boxes, as bench/ceiling does.
//
//   stage_bench FOLDER [train|val|train-known|val-known [ROUNDS [float32|float16|uint8 [STAGE]]]]
//
// STAGE: header, begin, decode, whole, planes, library-planes or ceiling. With "-known" it is known where the rows of
// all files begin (entry points), as from the second epoch on. Reads all JPEGs below FOLDER that headrace decodes
// natively. Each round runs every stage on every file in turn; printed is the CPU time of the thread, the fastest round
// of each file, summed over the files and divided by their number. With a stage named, that stage alone runs: for
// profilers, and because branches of a file that was decoded just before are predicted better than those of a new one.
// Outputs go to a ring that does not fit into the cache.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/fuse/fuse.h"
#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/jpeg/decode/plane_decoder.h"
#include "core/jpeg/sequential/jpeg_header.h"
#include "core/kernels/resize/kernels.h"
#include "library_crop.h"

namespace {

using namespace headrace;

constexpr int kEdge = 224, kShorter = 256, kRing = 64;
enum Stage_ { kHeader, kBegin, kDecode, kWhole, kPlanes, kLibraryPlanes, kCeiling, kStages };
constexpr const char* kNames[kStages] = {"header", "begin", "decode", "whole", "planes", "library-planes", "ceiling"};

struct NullSink final : RowSink {
  void push(const uint8_t* /*rows*/, size_t /*stride*/, int /*count*/) override {}
};

struct Sample {
  std::vector<uint8_t> bytes;
  JpegHeader header;
  Plan plan;
  Box box;
};

/// Pillow 13's.
bool vertical_first(Size in, Size out) {
  return in.height > out.height && in.height - out.height > 2 * (in.width - out.width);
}

Plan train_plan(Size image, std::mt19937& random) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  Box box = whole_image(image);
  for (int i = 0; i < 10; ++i) {
    const double area = uniform(0.08, 1) * image.width * image.height;
    const double ratio = std::exp(uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const int width = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const int height = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    box = {static_cast<int>(uniform(0, image.width - width + 1)),
           static_cast<int>(uniform(0, image.height - height + 1)), width, height};
    break;
  }
  Plan plan;
  plan.stages.push_back({{box}, {kEdge, kEdge}, Filter::kBilinear, vertical_first(box.size(), {kEdge, kEdge})});
  plan.last.box = {0, 0, kEdge, kEdge};
  plan.last.flip_horizontal = uniform(0, 1) < 0.5;
  return plan;
}

Plan val_plan(Size image) {
  const bool wide = image.width > image.height;
  const Size made{wide ? kShorter * image.width / image.height : kShorter,
                  wide ? kShorter : kShorter * image.height / image.width};
  Plan plan;
  plan.stages.push_back({{whole_image(image)}, made, Filter::kBilinear, vertical_first(image, made)});
  plan.last.box = {(made.width - kEdge) / 2, (made.height - kEdge) / 2, kEdge, kEdge};
  return plan;
}

std::vector<Sample> read_samples(const char* folder, bool train) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::mt19937 random(1);
  std::vector<Sample> samples;
  JpegDecoder decoder(kernels().blocks);
  NullSink sink;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    Sample sample{{std::istreambuf_iterator<char>(file), {}}, {}, {}, {}};
    try {
      sample.header = parse_jpeg_header(sample.bytes);
      if (sample.header.not_plain != nullptr) continue;
      const Size image = sample.header.size;
      sample.plan = train ? train_plan(image, random) : val_plan(image);
      sample.box = decode_box(sample.plan, image);
      decoder.decode(sample.bytes, sample.header, sample.box, sink);
      samples.push_back(std::move(sample));
    } catch (const std::exception&) {  // a file for Pillow
    }
  }
  return samples;
}

/// ImageNet's normalisation, or noise in narrower elements, which the store looks up in any case.
std::vector<uint8_t> table(int element_bytes) {
  std::vector<uint8_t> entries(kMaxLutBytes);
  std::mt19937 random(2);
  for (uint8_t& byte : entries) byte = static_cast<uint8_t>(random());
  if (element_bytes != sizeof(float)) return entries;
  constexpr float kMean[3] = {0.485F, 0.456F, 0.406F}, kDeviation[3] = {0.229F, 0.224F, 0.225F};
  for (int c = 0; c < 3; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      const float value = (static_cast<float>(byte) / 255.0F - kMean[c]) / kDeviation[c];
      std::memcpy(&entries[static_cast<size_t>(c * 256 + byte) * sizeof value], &value, sizeof value);
    }
  }
  return entries;
}

double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(
        stderr,
        "usage: stage_bench FOLDER [train|val|train-known|val-known [ROUNDS [float32|float16|uint8 [STAGE]]]]\n");
    return 2;
  }
  const std::string recipe = argc > 2 ? argv[2] : "train", dtype = argc > 4 ? argv[4] : "float32";
  const bool train = recipe.starts_with("train"), known = recipe.ends_with("-known");
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 11;
  const int element = dtype == "float32" ? 4 : dtype == "float16" ? 2 : 1;
  const std::string only = argc > 5 ? argv[5] : "";
  const std::vector<Sample> samples = read_samples(argv[1], train);
  if (samples.empty()) {
    std::fprintf(stderr, "no JPEG below this folder that is decoded natively\n");
    return 1;
  }
  const std::vector<uint8_t> entries = table(element);
  const OutputStrides strides = strides_of(Layout::kPlanar, 3, {kEdge, kEdge}, element);
  auto* ring = static_cast<uint8_t*>(std::aligned_alloc(4096, (strides.sample_bytes * kRing + 4095) / 4096 * 4096));
  std::memset(ring, 1, strides.sample_bytes * kRing);

  Fuser fuser(kernels());
  JpegDecoder decoder(kernels().blocks);
  PlaneDecoder planes(kernels().blocks), library_planes(nullptr);
  std::vector<uint8_t> plane_bytes;
  NullSink nothing;
  LibraryCrop library;
  EntryPoints learned(known ? size_t{1} << 28 : 0);
  EntryPoints* const points = known ? &learned : nullptr;
  for (const Sample& s : samples) {
    Box most = whole_image(s.header.size);  // without a column: a decode of all codes learns nothing
    most.width = std::max(1, most.width - 1);
    if (known) decoder.decode(s.bytes, s.header, most, nothing, points);
  }
  size_t place = 0;
  const auto run = [&](int stage, const Sample& s) {
    const Output output{ring + place++ % kRing * strides.sample_bytes,
                        strides.channel_stride,
                        strides.row_stride,
                        strides.pixel_stride,
                        {element, 3, entries.data()}};
    if (stage == kHeader || stage == kWhole) (void)parse_jpeg_header(s.bytes);
    if (stage == kBegin) (void)fuser.begin(s.plan, s.header.size, output);
    if (stage == kDecode) decoder.decode(s.bytes, s.header, s.box, nothing, points);
    if (stage == kWhole) decoder.decode(s.bytes, s.header, s.box, fuser.begin(s.plan, s.header.size, output), points);
    if (stage == kPlanes || stage == kLibraryPlanes) {
      const PlaneLayout layout = plane_layout(s.header, s.box);
      plane_bytes.resize(std::max(plane_bytes.size(), layout.bytes));
      (stage == kPlanes ? planes : library_planes).decode(s.bytes, s.header, layout, plane_bytes.data(), points);
    }
    if (stage == kCeiling) library.decode(s.bytes, s.box);
  };

  std::vector<double> best(samples.size() * kStages, std::numeric_limits<double>::infinity());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < samples.size(); ++i) {
      for (int stage = 0; stage < kStages; ++stage) {
        if (!only.empty() && only != kNames[stage]) continue;
        const double begin = cpu_us();
        run(stage, samples[i]);
        best[i * kStages + static_cast<size_t>(stage)] =
            std::min(best[i * kStages + static_cast<size_t>(stage)], cpu_us() - begin);
      }
    }
  }
  double sum[kStages] = {}, box_pixels = 0, scan_bytes = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    for (size_t stage = 0; stage < kStages; ++stage) sum[stage] += best[i * kStages + stage];
    box_pixels += static_cast<double>(samples[i].box.width) * samples[i].box.height;
    scan_bytes += static_cast<double>(samples[i].bytes.size());
  }
  const auto n = static_cast<double>(samples.size());
  for (size_t stage = 0; stage < kStages; ++stage)
    if (only == kNames[stage])
      std::printf("%s %s %s: %.1f us a sample\n", kernels().name, recipe.c_str(), only.c_str(), sum[stage] / n);
  if (!only.empty()) return 0;
  std::printf("%s %s %s: %zu files, %.0f bytes, %.0f pixels decoded; us a sample:", kernels().name, recipe.c_str(),
              dtype.c_str(), samples.size(), scan_bytes / n, box_pixels / n);
  for (size_t stage = 0; stage < kStages; ++stage) std::printf(" %s %.1f", kNames[stage], sum[stage] / n);
  std::printf(", resize and store %.1f, ceiling / whole %.3f\n",
              (sum[kWhole] - sum[kDecode] - sum[kHeader] - sum[kBegin]) / n, sum[kCeiling] / sum[kWhole]);
}
