// The loops from coefficients to pixels for AVX2: two blocks, or 16 values of 16 bits, at once.
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#include "core/jpeg/idct/invert_vector.h"
#include "core/jpeg/idct/pixels_vector.h"

namespace headrace {
namespace {

struct Avx2 {
  using V = __m256i;
  static constexpr int kBlocks = 2, kWords = 16;

  static V all8(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
  static V all16(int value) { return _mm256_set1_epi16(static_cast<short>(value)); }
  static V all32(int value) { return _mm256_set1_epi32(value); }
  static V pairs(int first, int second) {
    return all32(static_cast<int>(static_cast<unsigned>(second) << 16 | (static_cast<unsigned>(first) & 0xFFFF)));
  }
  static V add16(V a, V b) { return _mm256_add_epi16(a, b); }
  static V subtract16(V a, V b) { return _mm256_sub_epi16(a, b); }
  static V multiply16(V a, V b) { return _mm256_mullo_epi16(a, b); }
  static V multiply_round(V a, V b) { return _mm256_mulhrs_epi16(a, b); }
  static V times3(V a) { return add16(add16(a, a), a); }
  static V shift_left16(V a, int by) { return _mm256_slli_epi16(a, by); }
  static V shift_right16(V a, int by) { return _mm256_srli_epi16(a, by); }
  static V add32(V a, V b) { return _mm256_add_epi32(a, b); }
  static V subtract32(V a, V b) { return _mm256_sub_epi32(a, b); }
  static V shift_right32(V a, int by) { return _mm256_srai_epi32(a, by); }
  static V multiply_add(V a, V by) { return _mm256_madd_epi16(a, by); }
  static V multiply_add(V a, V by, V plus) { return add32(plus, multiply_add(a, by)); }
  static V either(V a, V b) { return _mm256_or_si256(a, b); }
  static V exclusive_or(V a, V b) { return _mm256_xor_si256(a, b); }
  static V saturated16(V a, V b) { return _mm256_packs_epi32(a, b); }
  static V saturated8(V a, V b) { return _mm256_packs_epi16(a, b); }
  static V unpack_low8(V a, V b) { return _mm256_unpacklo_epi8(a, b); }
  static V unpack_high8(V a, V b) { return _mm256_unpackhi_epi8(a, b); }
  static V unpack_low16(V a, V b) { return _mm256_unpacklo_epi16(a, b); }
  static V unpack_high16(V a, V b) { return _mm256_unpackhi_epi16(a, b); }
  static V unpack_low32(V a, V b) { return _mm256_unpacklo_epi32(a, b); }
  static V unpack_high32(V a, V b) { return _mm256_unpackhi_epi32(a, b); }
  static V unpack_low64(V a, V b) { return _mm256_unpacklo_epi64(a, b); }
  static V unpack_high64(V a, V b) { return _mm256_unpackhi_epi64(a, b); }

  static V load(const void* from) { return _mm256_loadu_si256(static_cast<const V*>(from)); }
  static void store(uint8_t* to, V v) { _mm256_storeu_si256(reinterpret_cast<V*>(to), v); }
  static __m128i load_half(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
  static V load_words(const uint8_t* from) { return _mm256_cvtepu8_epi16(load_half(from)); }
  static void store_words(uint8_t* to, V v) {
    const V together = _mm256_permute4x64_epi64(_mm256_packus_epi16(v, v), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(together));
  }

  template <bool kUpperHalf>
  static void load_rows(const int16_t* blocks, V* rows) {
    for (int y = 0; y < (kUpperHalf ? 4 : 8); y += 2) {
      const V a = load(blocks + y * kBlockEdge), b = load(blocks + 64 + y * kBlockEdge);
      rows[y] = _mm256_permute2x128_si256(a, b, 0x20);
      rows[y + 1] = _mm256_permute2x128_si256(a, b, 0x31);
    }
  }
  static V row_for_all(const uint16_t* quant) { return _mm256_broadcastsi128_si256(load_half(quant)); }
  static bool only_quarter(const int16_t* blocks) {
    V upper = _mm256_setzero_si256(), lower = upper;
    for (int i = 0; i < 2; ++i) {
      upper = either(upper, either(load(blocks + 64 * i), load(blocks + 64 * i + 16)));
      lower = either(lower, either(load(blocks + 64 * i + 32), load(blocks + 64 * i + 48)));
    }
    return _mm256_testz_si256(lower, lower) != 0 && _mm256_testz_si256(upper, _mm256_setr_epi64x(0, -1, 0, -1)) != 0;
  }
  static bool any_beyond_13_bits(V row) {
    const V beyond = shift_right16(add16(row, all16(8192)), 14);
    return _mm256_testz_si256(beyond, beyond) == 0;
  }
  static void store_two_rows(V rows, uint8_t* to, size_t stride) {
    const V apart = _mm256_permute4x64_epi64(rows, 0xD8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(apart));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + stride), _mm256_extracti128_si256(apart, 1));
  }

  /// 16 values in the order in which store_pixels() needs them: 128-bit lane i holds those of the pixels 4 i to 4 i + 3
  /// and 8 + 4 i to 8 + 4 i + 3.
  static V load_pixels(const uint8_t* from) { return _mm256_cvtepu8_epi16(_mm_shuffle_epi32(load_half(from), 0xD8)); }
  static void store_pixels(uint8_t* to, V r, V g, V b) {
    // The bytes of 8 values and of 8 others, alternating.
    const V mixed = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    const V rg = _mm256_shuffle_epi8(_mm256_packus_epi16(r, g), mixed);
    const V bx = _mm256_shuffle_epi8(_mm256_packus_epi16(b, all16(255)), mixed);
    store(to, unpack_low16(rg, bx));
    store(to + 32, unpack_high16(rg, bx));
  }
};

}  // namespace

const BlockLoops kAvx2Blocks{"avx2",
                             Inverse<Avx2>::run,
                             Pixels<Avx2>::upsample_h2v1,
                             Pixels<Avx2>::upsample_h2v2,
                             Pixels<Avx2>::upsample_h1v2,
                             Pixels<Avx2>::colour,
                             Pixels<Avx2>::gray};

}  // namespace headrace
#endif
