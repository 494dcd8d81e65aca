// The loops of OpenCV's bilinear resize in AVX2.
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#include <cstring>

#include "core/base/geometry.h"
#include "core/kernels/opencv_resize/opencv_loops.h"

namespace headrace {
namespace {

// Two pixels side by side, as pairs of the same channel in 16 bits.
__m128i pairs_at(const uint8_t* row, int32_t start) {
  const __m128i kPairs = _mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
  const uint8_t* pixel = row + static_cast<int64_t>(start) * kPixelBytes;
  return _mm_shuffle_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(pixel)), kPairs);
}

__m128i weights_at(const int16_t* weight, int x) {
  int32_t both;
  std::memcpy(&both, weight + 2 * x, sizeof(both));
  return _mm_set1_epi32(both);
}

// The sums of output pixels `a` and `b` in the two halves of a register.
__m256i sums_of(const uint8_t* row, const OpencvColumns& columns, int a, int b) {
  const __m256i pixels = _mm256_set_m128i(pairs_at(row, columns.start[b]), pairs_at(row, columns.start[a]));
  const __m256i weights = _mm256_set_m128i(weights_at(columns.weight, b), weights_at(columns.weight, a));
  return _mm256_srli_epi32(_mm256_madd_epi16(pixels, weights), 4);
}

void along_x(const uint8_t* row, const OpencvColumns& columns, int16_t* dst) {
  const int last = columns.count - 1;
  for (int x = 0; x < columns.count; x += 4, dst += 16) {
    const int y = x + 1 < last ? x + 1 : last, z = x + 2 < last ? x + 2 : last, w = x + 3 < last ? x + 3 : last;
    const __m256i sums = _mm256_packs_epi32(sums_of(row, columns, x, z), sums_of(row, columns, y, w));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), sums);
  }
}

__m256i mixed(const int16_t* upper, const int16_t* lower, __m256i upper_weight, __m256i lower_weight) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(upper));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lower));
  const __m256i sum = _mm256_add_epi16(_mm256_mulhi_epi16(a, upper_weight), _mm256_mulhi_epi16(b, lower_weight));
  return _mm256_srai_epi16(_mm256_add_epi16(sum, _mm256_set1_epi16(2)), 2);
}

void along_y(const int16_t* upper, const int16_t* lower, int16_t upper_weight, int16_t lower_weight, int count,
             uint8_t* dst) {
  const __m256i first = _mm256_set1_epi16(upper_weight), second = _mm256_set1_epi16(lower_weight);
  for (int i = 0; i < count; i += 32) {
    const __m256i low = mixed(upper + i, lower + i, first, second);
    const __m256i high = mixed(upper + i + 16, lower + i + 16, first, second);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xD8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + i), bytes);
  }
}

}  // namespace

const OpencvLoops kAvx2Opencv{along_x, along_y};

}  // namespace headrace
#endif
