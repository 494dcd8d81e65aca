// Times the whole fuse (tables, both passes, store) of one sample on every instruction set, after checking the bytes.
//
//   fuse_bench [in_width in_height out_width out_height [rounds]]
//
// Each round runs every contender in turn. Prints median, quartiles and best over the rounds, in microseconds per
// sample. Rows come from a small buffer in the cache, as a decoder's do; outputs go to a mapped batch of 64 samples
// that does not fit into the cache, as a loader's slots do.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/base/row_buffer.h"
#include "core/fuse/fuse.h"

namespace {

using namespace headrace;

constexpr int kBatch = 64;
constexpr int kPushedRows = 16;              // at a time, as a decoder does
constexpr int kImageRows = 4 * kPushedRows;  // the image repeats them

struct Case {
  std::string name;
  int element_bytes;
  bool planar;
};

struct Bench {
  Size in, out;
  RowBuffer image;
  Plan plan;
  std::vector<uint8_t> entries;
  uint8_t* batch;

  Bench(Size in, Size out) : in(in), out(out) {
    std::mt19937 random(1);
    image.reset(kImageRows, in.width * kPixelBytes);
    for (int y = 0; y < kImageRows; ++y) {
      for (int i = 0; i < in.width * kPixelBytes; ++i) image.row(y)[i] = static_cast<uint8_t>(random());
    }
    plan.stages.push_back({{whole_image(in)}, out, Filter::kBilinear, false});
    plan.last.box = whole_image(out);
    entries.resize(kMaxLutBytes);
    for (auto& byte : entries) byte = static_cast<uint8_t>(random());
    batch = static_cast<uint8_t*>(std::aligned_alloc(4096, (sample_bytes(4) * kBatch + 4095) / 4096 * 4096));
    std::memset(batch, 1, sample_bytes(4) * kBatch);
  }
  size_t sample_bytes(int element) const { return size_t(out.width) * out.height * 3 * element; }

  Output output(const Case& c, int sample) const {
    Output o;
    const ptrdiff_t e = c.element_bytes, w = out.width, h = out.height;
    o.base = batch + sample_bytes(c.element_bytes) * size_t(sample);
    o.channel_stride = c.planar ? w * h * e : e;
    o.row_stride = c.planar ? w * e : 3 * w * e;
    o.pixel_stride = c.planar ? e : 3 * e;
    o.lut = {c.element_bytes, 3, entries.data(), nullptr};
    return o;
  }
  void run(Fuser& fuser, const Output& o) {
    RowSink& sink = fuser.begin(plan, in, o);
    for (int y = 0; y < in.height; y += kPushedRows) {
      sink.push(image.row(y % kImageRows), image.stride(), std::min(kPushedRows, in.height - y));
    }
  }
};

double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<size_t>(q * (v.size() - 1) + 0.5)];
}

}  // namespace

int main(int argc, char** argv) {
  const auto arg = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  Bench bench({arg(1, 295), arg(2, 282)}, {arg(3, 224), arg(4, 224)});
  const int rounds = arg(5, 51);
  const std::vector<Case> cases = {{"float32 nchw", 4, true},  {"float32 nhwc", 4, false}, {"float16 nchw", 2, true},
                                   {"float16 nhwc", 2, false}, {"uint8 nchw", 1, true},    {"uint8 nhwc", 1, false}};
  struct Contender {
    const Kernels* set;
    const Case* what;
    std::unique_ptr<Fuser> fuser;
    std::vector<double> times;
  };
  std::vector<Contender> contenders;
  for (const Case& c : cases) {
    std::vector<uint8_t> want;
    for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
      const Kernels* set = kernels_named(name);
      if (!set) continue;
      contenders.push_back({set, &c, std::make_unique<Fuser>(*set), {}});
      const Output o = bench.output(c, 0);
      std::memset(o.base, 0, bench.sample_bytes(c.element_bytes));
      bench.run(*contenders.back().fuser, o);
      const std::vector<uint8_t> got(o.base, o.base + bench.sample_bytes(c.element_bytes));
      if (want.empty()) want = got;
      if (got != want) {
        std::printf("%s %s differs from scalar\n", name, c.name.c_str());
        return 1;
      }
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (Contender& c : contenders) {
      const int samples = std::strcmp(c.set->name, "scalar") == 0 ? 8 : kBatch;
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < samples; ++i) bench.run(*c.fuser, bench.output(*c.what, (i + round * 8) % kBatch));
      const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
      c.times.push_back(took.count() / samples);
    }
  }
  std::printf("%d x %d -> %d x %d, %d rounds: median (quartiles; best) in us\n", bench.in.width, bench.in.height,
              bench.out.width, bench.out.height, rounds);
  for (const Contender& c : contenders) {
    std::printf("%-13s %-7s %8.1f (%.1f .. %.1f; %.1f)\n", c.what->name.c_str(), c.set->name, quantile(c.times, 0.5),
                quantile(c.times, 0.25), quantile(c.times, 0.75), quantile(c.times, 0));
  }
}
