// Runs one loop of one instruction set again and again, for a counter of instructions (tools/aarch64/instructions.sh).
//
//   loop_count SET LOOP TIMES
//
// Without LOOP it prints the loops, each with the number of pixels or samples that one call works on. The difference
// between runs of 1 and of 1 + n times, divided by n and by this number, is the count for one of them.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/resize/kernels.h"
#include "core/kernels/resize/normalisation.h"

namespace {

using namespace headrace;

constexpr int kPixels = 448, kOut = 224, kRows = 8, kBlocks = kPixels / 8;

struct Loop {
  int units;
  std::function<void()> call;
};

template <class T>
T* noise(size_t count, unsigned mask) {
  static std::mt19937 random(1);
  auto* values = static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64));
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(random() & mask);
  return values;
}

std::map<std::string, Loop> loops(const Kernels& set) {
  std::map<std::string, Loop> made;
  const size_t many = size_t{16} * kPixels * kRows;
  int16_t* full = noise<int16_t>(64 * kBlocks, 15);
  int16_t* quarter = noise<int16_t>(64 * kBlocks, 15);
  for (int i = 0; i < 64 * kBlocks; ++i)
    if (i % 8 > 3 || i % 64 > 31) quarter[i] = 0;
  const uint16_t* quant = noise<uint16_t>(64, 7);
  uint8_t *a = noise<uint8_t>(many, 255) + 128, *b = noise<uint8_t>(many, 255) + 128, *c = noise<uint8_t>(many, 255);
  auto* to = static_cast<uint8_t*>(std::aligned_alloc(64, many));
  auto* floats = noise<float>(many / 4, 255);
  const BlockLoops& block = set.blocks != nullptr ? *set.blocks : kScalarBlocks;
  made["invert"] = {64 * kBlocks, [=] { block.invert(full, kBlocks, quant, to, kPixels); }};
  made["invert_quarter"] = {64 * kBlocks, [=] { block.invert(quarter, kBlocks, quant, to, kPixels); }};
  made["upsample_h2v1"] = {2 * kPixels, [=] { block.upsample_h2v1(a, kPixels, to); }};
  made["upsample_h2v2"] = {2 * kPixels, [=] { block.upsample_h2v2(a, b, kPixels, to); }};
  made["upsample_h1v2"] = {kPixels, [=] { block.upsample_h1v2(a, b, 1, kPixels, to); }};
  made["colour"] = {kPixels, [=] { block.colour(a, b, c, kPixels, to); }};

  for (const bool enlarge : {false, true}) {
    auto* table = new ResampleTable;
    const int in = enlarge ? kOut / 2 : kPixels;
    table->build(in, kOut, Filter::kBilinear, 0, kOut);
    const TableView view = table->view();
    made[enlarge ? "resample_x_enlarge" : "resample_x_halve"] = {
        kRows * kOut, [=, &set] { set.resample_x(a, size_t{4} * kPixels, kRows, view, to, size_t{4} * kOut, 0); }};
    made[enlarge ? "resample_y_enlarge" : "resample_y_halve"] = {
        kOut, [=, &set] { set.resample_y(a, size_t{4} * kOut, view, 1, 4 * kOut, to); }};
  }

  auto* entries = new std::vector<float>;
  for (int i = 0; i < 3 * 256; ++i) entries->push_back((static_cast<float>(i % 256) / 255.0F - 0.5F) / 0.25F);
  auto* planes = static_cast<uint8_t*>(std::aligned_alloc(64, kMaxLutBytes));
  for (const int element : {4, 2, 1}) {
    auto* lut = new Lut{element, 3, entries->data()};
    split_lut(*lut, planes);
    lut->planes = planes;
    const RowTarget target{to, ptrdiff_t{kOut} * element, element};
    made["store_" + std::to_string(8 * element)] = {kOut, [=, &set] { set.store(a, 0, kOut, false, *lut, target); }};
    if (element != 4) continue;
    auto* known = new Normalisation(find_normalisation(entries->data()).value());
    auto* computed = new Lut(*lut);
    computed->normalisation = known;
    made["store_normalised"] = {kOut, [=, &set] { set.store(a, 0, kOut, false, *computed, target); }};
  }

  const EffectLoops& effects = *set.effects;
  auto* sums = new int32_t[3 * 256]();
  auto* rows = new const uint8_t*[3]{a, a + 4 * kPixels, a + 8 * kPixels};
  const auto effect = [&made](const char* name, auto call) { made[name] = {kPixels, call}; };
  effect("gray", [=] { effects.gray(to, kPixels); });
  effect("change_saturation", [=] { effects.change_saturation(to, kPixels, 0.7F); });
  effect("turn_hue", [=] { effects.turn_hue(to, kPixels, 21); });
  effect("look_up", [=] { effects.look_up(to, kPixels, c); });
  effect("sum_of_luma", [=] { (void)effects.sum_of_luma(a, kPixels); });
  effect("add_to_histograms", [=] { effects.add_to_histograms(a, kPixels, sums); });
  effect("sharpen", [=] { effects.sharpen(rows, kPixels, 0.7F, to); });
  effect("box", [=] { effects.box(rows, 3, 5592405, 5592405, size_t{4} * kPixels, to); });
  effect("add_weighted", [=] { effects.add_weighted(a, size_t{4} * kPixels, 0.3F, floats); });
  effect("blend_sums", [=] { effects.blend_sums(floats, size_t{4} * kPixels, 0.3F, to); });
  effect("blend", [=] { effects.blend(a, size_t{4} * kPixels, 0.3F, to); });
  effect("tensor_change_saturation", [=] { effects.tensor_change_saturation(to, kPixels, 0.7F, 0.3F, false); });
  effect("tensor_turn_hue", [=] { effects.tensor_turn_hue(to, kPixels, 0.1F, false); });
  effect("tensor_gray_sum", [=] { (void)effects.tensor_gray_sum(a, kPixels, false); });
  effect("tensor_sharpen", [=] { effects.tensor_sharpen(rows, kPixels, 0.7F, 0.3F, 0, to); });
  auto* mixed = noise<uint16_t>(kPixels, 0x3BFF);
  const MixLoops& mixing = *set.mixing;
  const MixShares shares{0.3, 0.7};
  effect("mix_float16", [=] { mixing.with[0](to, mixed, kPixels, shares); });
  effect("mix_float32", [=] { mixing.with[2](to, floats, kPixels, shares); });
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  const Kernels* set = kernels_named(argc > 1 ? argv[1] : "scalar");
  if (set == nullptr) return 2;
  const std::map<std::string, Loop> all = loops(*set);
  if (argc < 4) {
    for (const auto& [name, loop] : all) std::printf("%s %d\n", name.c_str(), loop.units);
    return 0;
  }
  const Loop& loop = all.at(argv[2]);
  for (int i = std::atoi(argv[3]); i > 0; --i) loop.call();
}
