// Pixels of three bytes -> four for AVX2. AVX-512's set also uses it: the loop is bound by memory.
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#include "core/base/geometry.h"
#include "core/kernels/resize/kernel_sets.h"

namespace headrace {

// No std:: and no other inline functions here: see resize_loops_avx512.cpp.
void rgb_to_rgbx_avx2(const uint8_t* rgb, int pixels, uint8_t* rgbx) {
  constexpr int kStep = 8, kRgbBytes = 3;
  // The load of the second four pixels begins four bytes before them, so that none passes the last pixel.
  const __m256i apart = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1,  //
                                         4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
  const auto put = [&](int x) {
    const uint8_t* from = rgb + ptrdiff_t(x) * kRgbBytes;
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 8));
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(rgbx + ptrdiff_t(x) * kPixelBytes),
                        _mm256_shuffle_epi8(both, apart));
  };
  if (pixels < kStep) return kScalarKernels.rgb_to_rgbx(rgb, pixels, rgbx);
  for (int x = 0; x + kStep < pixels; x += kStep) put(x);
  put(pixels - kStep);  // may repeat some
}

}  // namespace headrace
#endif
