// The store for AVX2: a gather looks eight elements of a channel up; what has no fast way goes to the plain loop.
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#include "geometry.h"
#include "kernel_sets.h"

namespace headrace {
namespace {

using Vec = __m256i;

void store_planar4(const uint8_t* row, int pixels, bool mirror, const Lut& lut, const RowTarget& target) {
  const Vec backwards = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  const Vec byte = _mm256_set1_epi32(0xff);
  for (int x = 0; x + 8 <= pixels; x += 8) {
    const uint8_t* at = row + ptrdiff_t(mirror ? pixels - 8 - x : x) * kPixelBytes;
    Vec eight = _mm256_loadu_si256(reinterpret_cast<const Vec*>(at));
    if (mirror) eight = _mm256_permutevar8x32_epi32(eight, backwards);
    for (int c = 0; c < lut.channels; ++c) {
      const Vec index = _mm256_and_si256(_mm256_srl_epi32(eight, _mm_cvtsi32_si128(8 * c)), byte);
      const Vec out = _mm256_i32gather_epi32(static_cast<const int*>(lut.entries) + 256 * c, index, 4);
      _mm256_storeu_si256(reinterpret_cast<Vec*>(target.base + c * target.channel_stride + ptrdiff_t(x) * 4), out);
    }
  }
}

}  // namespace

void store_avx2(const uint8_t* row, int pixels, bool mirror, const Lut& lut, const RowTarget& target) {
  const int whole = pixels & ~7;
  if (lut.element_bytes != 4 || target.pixel_stride != 4 || whole == 0) {
    return kScalarKernels.store(row, pixels, mirror, lut, target);
  }
  store_planar4(row, pixels, mirror, lut, target);
  if (whole == pixels) return;
  const RowTarget rest{target.base + ptrdiff_t(whole) * 4, target.channel_stride, target.pixel_stride};
  kScalarKernels.store(row + (mirror ? 0 : ptrdiff_t(whole) * kPixelBytes), pixels - whole, mirror, lut, rest);
}

}  // namespace headrace
#endif
