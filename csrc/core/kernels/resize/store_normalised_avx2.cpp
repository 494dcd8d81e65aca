// The store of normalised float32 for AVX2: computes eight elements at a time, where a table needs one load for each.
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#include "core/base/geometry.h"
#include "core/kernels/resize/kernel_sets.h"
#include "core/kernels/resize/normalisation.h"

// No std:: and no other inline functions here: the linker might pick this file's copies for the whole program, and they
// run only on processors with AVX2.
namespace headrace {
namespace {

constexpr int kStep = 8;  // pixels

int least(int a, int b) { return a < b ? a : b; }
int most(int a, int b) { return a > b ? a : b; }

/// The constants for eight consecutive elements.
struct Constants {
  __m256 mean, deviation, inverse;
};

__m256 divided(__m256 value, __m256 by, __m256 inverse) {
  const __m256 near = _mm256_mul_ps(value, inverse);
  return _mm256_fmadd_ps(_mm256_fnmadd_ps(near, by, value), inverse, near);
}

__m256 normalised(__m256i bytes, const Constants& of) {
  const __m256 unit = divided(_mm256_cvtepi32_ps(bytes), _mm256_set1_ps(255.0F), _mm256_set1_ps(kByteInverse));
  return divided(_mm256_sub_ps(unit, of.mean), of.deviation, of.inverse);
}

void put(float* to, __m256 elements) {
  _mm256_storeu_ps(to, elements);
  _mm_prefetch(reinterpret_cast<const char*>(to) + kPrefetchBytes, _MM_HINT_T1);
}

void planar(const uint8_t* row, int pixels, bool mirror, const Normalisation& by, const RowTarget& target) {
  const __m256i byte = _mm256_set1_epi32(255), backwards = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  Constants of[3];
  float* to[3];
  for (int c = 0; c < 3; ++c) {
    of[c] = {_mm256_set1_ps(by.mean[c]), _mm256_set1_ps(by.deviation[c]), _mm256_set1_ps(by.inverse[c])};
    to[c] = reinterpret_cast<float*>(target.base + c * target.channel_stride);
  }
  for (int x = 0; x + kStep <= pixels; x += kStep) {
    const int first = mirror ? pixels - kStep - x : x;
    __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + ptrdiff_t(first) * kPixelBytes));
    if (mirror) v = _mm256_permutevar8x32_epi32(v, backwards);
    put(to[0] + x, normalised(_mm256_and_si256(v, byte), of[0]));
    put(to[1] + x, normalised(_mm256_and_si256(_mm256_srli_epi32(v, 8), byte), of[1]));
    put(to[2] + x, normalised(_mm256_and_si256(_mm256_srli_epi32(v, 16), byte), of[2]));
  }
}

/// Elements 8 k to 8 k + 7 of eight pixels RGBRGB... come from these bytes of the four pixels that begin at `from`.
struct Third {
  int from;
  __m128i bytes;
};

void interleaved(const uint8_t* row, int pixels, bool mirror, const Normalisation& by, const RowTarget& target) {
  Third thirds[3];
  Constants of[3];
  for (int k = 0; k < 3; ++k) {
    alignas(16) uint8_t bytes[16] = {};
    alignas(32) float mean[8], deviation[8], inverse[8];
    const int first = 8 * k / 3;
    thirds[k].from = mirror ? most(kStep - 4 - first, 0) : least(first, kStep - 4);
    for (int i = 0; i < 8; ++i) {
      const int pixel = (8 * k + i) / 3, c = (8 * k + i) % 3;
      const int source = mirror ? kStep - 1 - pixel : pixel;
      bytes[i] = static_cast<uint8_t>((source - thirds[k].from) * kPixelBytes + c);
      mean[i] = by.mean[c];
      deviation[i] = by.deviation[c];
      inverse[i] = by.inverse[c];
    }
    thirds[k].bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
    of[k] = {_mm256_load_ps(mean), _mm256_load_ps(deviation), _mm256_load_ps(inverse)};
  }
  auto* to = reinterpret_cast<float*>(target.base);
  for (int x = 0; x + kStep <= pixels; x += kStep) {
    const uint8_t* eight = row + ptrdiff_t(mirror ? pixels - kStep - x : x) * kPixelBytes;
    for (int k = 0; k < 3; ++k, to += 8) {
      const uint8_t* at = eight + ptrdiff_t(thirds[k].from) * kPixelBytes;
      const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      put(to, normalised(_mm256_cvtepu8_epi32(_mm_shuffle_epi8(four, thirds[k].bytes)), of[k]));
    }
  }
}

}  // namespace

int store_normalised_avx2(const uint8_t* row, int pixels, bool mirror, const Normalisation& by,
                          const RowTarget& target) {
  constexpr ptrdiff_t kBytes = sizeof(float);
  if (target.pixel_stride == kBytes) {
    planar(row, pixels, mirror, by, target);
  } else if (target.pixel_stride == 3 * kBytes && target.channel_stride == kBytes) {
    interleaved(row, pixels, mirror, by, target);
  } else {
    return 0;
  }
  return pixels / kStep * kStep;
}

}  // namespace headrace
#endif
