// The inner loops of mixing for AVX2 and F16C. The compiler vectorises all of them except those for float16.
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#include <cstddef>

#include "core/kernels/mixup/mix_loops.h"
#include "core/kernels/mixup/mix_math.h"

namespace headrace {
namespace {

constexpr size_t kLanes = 8;
constexpr size_t kHalf = sizeof(uint16_t);

inline __m256 load(const uint8_t* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

inline __m128i rounded(__m256 values) { return _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT); }

inline __m256 product(__m256 values, __m256 factor) { return _mm256_cvtph_ps(rounded(_mm256_mul_ps(values, factor))); }

inline void store_mixed(uint8_t* to, __m256 own, __m256 other, __m256 share, __m256 rest) {
  const __m256 sum = _mm256_add_ps(product(other, rest), product(own, share));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), rounded(sum));
}

void halves_with(void* values, const void* others, size_t count, const MixShares& shares) {
  const __m256 share = _mm256_set1_ps(static_cast<float>(shares.share));
  const __m256 rest = _mm256_set1_ps(static_cast<float>(shares.rest));
  auto* own = static_cast<uint8_t*>(values);
  const auto* other = static_cast<const uint8_t*>(others);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes, own += kLanes * kHalf, other += kLanes * kHalf) {
    store_mixed(own, load(own), load(other), share, rest);
  }
  mix_with<Float16>(own, other, count - i, shares);
}

void halves_in_pair(void* a, void* b, size_t count, const MixShares& shares) {
  const __m256 share = _mm256_set1_ps(static_cast<float>(shares.share));
  const __m256 rest = _mm256_set1_ps(static_cast<float>(shares.rest));
  auto* first = static_cast<uint8_t*>(a);
  auto* second = static_cast<uint8_t*>(b);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes, first += kLanes * kHalf, second += kLanes * kHalf) {
    const __m256 own = load(first), other = load(second);
    store_mixed(first, own, other, share, rest);
    store_mixed(second, other, own, share, rest);
  }
  mix_pair<Float16>(first, second, count - i, shares);
}

}  // namespace

const MixLoops kAvx2Mixing{{halves_with, mix_with<Bfloat16>, mix_with<float>, mix_with<double>},
                           {halves_in_pair, mix_pair<Bfloat16>, mix_pair<float>, mix_pair<double>}};

}  // namespace headrace
#endif
