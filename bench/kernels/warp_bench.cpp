// Times warps of one image on every instruction set, after checking the bytes.
//
//   warp_bench [width height [rounds]]
//
// Each round runs every contender in turn. Prints median, quartiles and best over the rounds, in microseconds per
// image.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/resize/kernels.h"
#include "core/kernels/warp/warp_math.h"

namespace {

using namespace headrace;

struct Map {
  std::string name;
  std::vector<double> numbers;
};

struct Contender {
  std::string name;
  const Kernels* set;
  WarpJob job;
  std::vector<double> times;
};

double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<size_t>(q * (v.size() - 1) + 0.5)];
}

}  // namespace

int main(int argc, char** argv) {
  const auto arg = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  const Size size{arg(1, 224), arg(2, 224)};
  const Box all = whole_image(size);
  const int rounds = arg(3, 51);
  const size_t bytes = static_cast<size_t>(size.width) * static_cast<size_t>(size.height) * kPixelBytes;
  std::mt19937 random(1);
  std::vector<uint8_t> image(bytes), out(bytes), want(bytes);
  for (uint8_t& byte : image) byte = static_cast<uint8_t>(random());

  const double c = std::cos(0.35), s = std::sin(0.35), x = size.width / 2.0, y = size.height / 2.0;
  const std::vector<Map> maps = {
      {"shift", {1, 0, 20, 0, 1, 0}},       {"scale", {1.1, 0, -10, 0, 0.9, 10}},
      {"shear", {1, 0.3, 0, 0, 1, 0}},      {"rotation", {c, s, x - c * x - s * y, -s, c, y + s * x - c * y}},
      {"far", {c, s, 32768, -s, c, 32768}}, {"perspective", {1.1, 0.1, -20, 0.05, 1.2, -15, 0.0005, 0.0004}}};
  std::vector<Contender> contenders;
  for (const auto& [filter, name] : {std::pair{Filter::kNearest, "nearest"}, std::pair{Filter::kBilinear, "bilinear"},
                                     std::pair{Filter::kBicubic, "bicubic"}}) {
    for (const Map& map : maps) {
      Warp warp;
      warp.perspective = map.numbers.size() == 8;
      warp.filter = filter;
      std::copy(map.numbers.begin(), map.numbers.end(), warp.a);
      warp.out = size;
      kernels_named("scalar")->run_warp(warp_job(warp), image.data(), size, all, want.data());
      for (const char* set : {"scalar", "avx2", "avx512", "neon"}) {
        const Kernels* named = kernels_named(set);
        if (!named) continue;
        contenders.push_back({std::string(name) + " " + map.name, named, warp_job(warp), {}});
        named->run_warp(contenders.back().job, image.data(), size, all, out.data());
        if (out != want) {
          std::printf("%s of %s differs from scalar\n", contenders.back().name.c_str(), set);
          return 1;
        }
      }
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (Contender& contender : contenders) {
      const auto begin = std::chrono::steady_clock::now();
      contender.set->run_warp(contender.job, image.data(), size, all, out.data());
      const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
      contender.times.push_back(took.count());
    }
  }
  std::printf("%d x %d, %d rounds: median (quartiles; best) in us\n", size.width, size.height, rounds);
  for (const Contender& one : contenders) {
    std::printf("%-21s %-7s %8.1f (%.1f .. %.1f; %.1f)\n", one.name.c_str(), one.set->name, quantile(one.times, 0.5),
                quantile(one.times, 0.25), quantile(one.times, 0.75), quantile(one.times, 0));
  }
}
