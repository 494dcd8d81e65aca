// The inner loops of mixing for NEON. The compiler vectorises all of them except those for float16.
#include <arm_neon.h>

#include <cstddef>

#include "core/kernels/mixup/mix_loops.h"
#include "core/kernels/mixup/mix_math.h"

namespace headrace {
namespace {

constexpr size_t kLanes = 4;

float32x4_t load(const Float16* from) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(from))));
}

float16x4_t rounded(float32x4_t values) { return vcvt_f16_f32(values); }

float32x4_t product(float32x4_t values, float factor) { return vcvt_f32_f16(rounded(vmulq_n_f32(values, factor))); }

void store_mixed(Float16* to, float32x4_t own, float32x4_t other, float share, float rest) {
  const float32x4_t sum = vaddq_f32(product(other, rest), product(own, share));
  vst1_u16(reinterpret_cast<uint16_t*>(to), vreinterpret_u16_f16(rounded(sum)));
}

// MixLoops::with for float16; mix_with does what is left of the last kLanes.
void halves_with(void* values, const void* others, size_t count, const MixShares& shares) {
  const auto share = static_cast<float>(shares.share), rest = static_cast<float>(shares.rest);
  auto* own = static_cast<Float16*>(values);
  const auto* other = static_cast<const Float16*>(others);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store_mixed(own + i, load(own + i), load(other + i), share, rest);
  mix_with<Float16>(own + i, other + i, count - i, shares);
}

void halves_in_pair(void* a, void* b, size_t count, const MixShares& shares) {
  const auto share = static_cast<float>(shares.share), rest = static_cast<float>(shares.rest);
  auto *first = static_cast<Float16*>(a), *second = static_cast<Float16*>(b);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const float32x4_t own = load(first + i), other = load(second + i);
    store_mixed(first + i, own, other, share, rest);
    store_mixed(second + i, other, own, share, rest);
  }
  mix_pair<Float16>(first + i, second + i, count - i, shares);
}

}  // namespace

const MixLoops kNeonMixing{{halves_with, mix_with<Bfloat16>, mix_with<float>, mix_with<double>},
                           {halves_in_pair, mix_pair<Bfloat16>, mix_pair<float>, mix_pair<double>}};

}  // namespace headrace
