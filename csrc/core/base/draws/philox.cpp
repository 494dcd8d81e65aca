// Computes blocks of four words, one after another: the compiler overlaps their rounds.
#include "core/base/draws/philox.h"

#include <algorithm>
#include <array>

namespace headrace {
namespace {

__extension__ using Wide = unsigned __int128;
using Words = std::array<uint64_t, 4>;

constexpr int kRounds = 10;
constexpr uint64_t kMultipliers[] = {0xD2E7470EE14C6C93, 0xCA5A826395121157};
constexpr uint64_t kKeySteps[] = {0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B};

Words philox(Words counter, uint64_t key0, uint64_t key1) {
  for (int round = 0; round < kRounds; ++round, key0 += kKeySteps[0], key1 += kKeySteps[1]) {
    const Wide first = Wide{kMultipliers[0]} * counter[0], second = Wide{kMultipliers[1]} * counter[2];
    const auto high = [](Wide product) { return static_cast<uint64_t>(product >> 64); };
    counter = {high(second) ^ counter[1] ^ key0, static_cast<uint64_t>(second), high(first) ^ counter[3] ^ key1,
               static_cast<uint64_t>(first)};
  }
  return counter;
}

}  // namespace

void uniforms_of_samples(uint64_t seed, uint64_t epoch, std::span<const int64_t> indices,
                         std::span<const int64_t> occurrences, std::span<double> uniforms) {
  const size_t each = indices.empty() ? 0 : uniforms.size() / indices.size();
  double* to = uniforms.data();
  for (size_t sample = 0; sample < indices.size(); ++sample) {
    // numpy's Philox increments its counter before it computes a block, so the first block has number 1.
    Words counter{0, static_cast<uint64_t>(indices[sample]), static_cast<uint64_t>(occurrences[sample]), 0};
    for (size_t made = 0; made < each; made += counter.size()) {
      ++counter[0];
      const Words words = philox(counter, seed, epoch);
      const size_t count = std::min(words.size(), each - made);
      for (size_t i = 0; i < count; ++i) *to++ = static_cast<double>(words[i] >> 11) * 0x1p-53;
    }
  }
}

}  // namespace headrace
