// The loops from coefficients to pixels for AVX-512 with VBMI and VNNI (Ice Lake, Zen 4 and newer): four blocks, or 32
// values of 16 bits, at once.
#if defined(__x86_64__) || defined(_M_X64)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns of its own header (PR 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "core/jpeg/idct/invert_vector.h"
#include "core/jpeg/idct/pixels_vector.h"

namespace headrace {
namespace {

struct Avx512 {
  using V = __m512i;
  static constexpr int kBlocks = 4, kWords = 32;

  static V all8(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }
  static V all16(int value) { return _mm512_set1_epi16(static_cast<short>(value)); }
  static V all32(int value) { return _mm512_set1_epi32(value); }
  static V pairs(int first, int second) {
    return all32(static_cast<int>(static_cast<unsigned>(second) << 16 | (static_cast<unsigned>(first) & 0xFFFF)));
  }
  static V add16(V a, V b) { return _mm512_add_epi16(a, b); }
  static V subtract16(V a, V b) { return _mm512_sub_epi16(a, b); }
  static V multiply16(V a, V b) { return _mm512_mullo_epi16(a, b); }
  static V multiply_round(V a, V b) { return _mm512_mulhrs_epi16(a, b); }
  static V times3(V a) { return add16(add16(a, a), a); }
  static V shift_left16(V a, int by) { return _mm512_slli_epi16(a, static_cast<unsigned>(by)); }
  static V shift_right16(V a, int by) { return _mm512_srli_epi16(a, static_cast<unsigned>(by)); }
  static V add32(V a, V b) { return _mm512_add_epi32(a, b); }
  static V subtract32(V a, V b) { return _mm512_sub_epi32(a, b); }
  static V shift_right32(V a, int by) { return _mm512_srai_epi32(a, static_cast<unsigned>(by)); }
  static V multiply_add(V a, V by) { return _mm512_madd_epi16(a, by); }
  static V multiply_add(V a, V by, V plus) { return _mm512_dpwssd_epi32(plus, a, by); }
  static V either(V a, V b) { return _mm512_or_si512(a, b); }
  static V exclusive_or(V a, V b) { return _mm512_xor_si512(a, b); }
  static V saturated16(V a, V b) { return _mm512_packs_epi32(a, b); }
  static V saturated8(V a, V b) { return _mm512_packs_epi16(a, b); }
  static V unpack_low8(V a, V b) { return _mm512_unpacklo_epi8(a, b); }
  static V unpack_high8(V a, V b) { return _mm512_unpackhi_epi8(a, b); }
  static V unpack_low16(V a, V b) { return _mm512_unpacklo_epi16(a, b); }
  static V unpack_high16(V a, V b) { return _mm512_unpackhi_epi16(a, b); }
  static V unpack_low32(V a, V b) { return _mm512_unpacklo_epi32(a, b); }
  static V unpack_high32(V a, V b) { return _mm512_unpackhi_epi32(a, b); }
  static V unpack_low64(V a, V b) { return _mm512_unpacklo_epi64(a, b); }
  static V unpack_high64(V a, V b) { return _mm512_unpackhi_epi64(a, b); }

  static V load(const void* from) { return _mm512_loadu_si512(from); }
  static void store(uint8_t* to, V v) { _mm512_storeu_si512(to, v); }
  static V load_words(const uint8_t* from) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static void store_words(uint8_t* to, V v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi16_epi8(v));
  }

  /// Vectors with 4 rows of one block each, as loaded from memory, become vectors with one row of all blocks.
  static void four_rows(V a, V b, V c, V d, V* rows) {
    const V ab02 = _mm512_shuffle_i64x2(a, b, 0x88), ab13 = _mm512_shuffle_i64x2(a, b, 0xDD);
    const V cd02 = _mm512_shuffle_i64x2(c, d, 0x88), cd13 = _mm512_shuffle_i64x2(c, d, 0xDD);
    rows[0] = _mm512_shuffle_i64x2(ab02, cd02, 0x88);
    rows[1] = _mm512_shuffle_i64x2(ab13, cd13, 0x88);
    rows[2] = _mm512_shuffle_i64x2(ab02, cd02, 0xDD);
    rows[3] = _mm512_shuffle_i64x2(ab13, cd13, 0xDD);
  }
  template <bool kUpperHalf>
  static void load_rows(const int16_t* blocks, V* rows) {
    four_rows(load(blocks), load(blocks + 64), load(blocks + 128), load(blocks + 192), rows);
    if constexpr (!kUpperHalf)
      four_rows(load(blocks + 32), load(blocks + 96), load(blocks + 160), load(blocks + 224), rows + 4);
  }
  static V row_for_all(const uint16_t* quant) {
    return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(quant)));
  }
  static bool only_quarter(const int16_t* blocks) {
    V upper = load(blocks), lower = load(blocks + 32);
    for (int i = 1; i < kBlocks; ++i) {
      upper = either(upper, load(blocks + 64 * i));
      lower = either(lower, load(blocks + 64 * i + 32));
    }
    return _mm512_test_epi64_mask(either(_mm512_maskz_mov_epi64(0xAA, upper), lower), all8(-1)) == 0;
  }
  static bool any_beyond_13_bits(V row) { return _mm512_cmpgt_epu16_mask(add16(row, all16(8192)), all16(16383)) != 0; }
  static void store_two_rows(V rows, uint8_t* to, size_t stride) {
    const V apart = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), rows);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(apart));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + stride), _mm512_extracti64x4_epi64(apart, 1));
  }

  /// 32 values in the order in which store_pixels() needs them: 128-bit lane i holds those of the pixels 4 i to 4 i + 3
  /// and 16 + 4 i to 16 + 4 i + 3.
  static V load_pixels(const uint8_t* from) {
    const V four_apart =
        _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 0, 0, 0, 0, 0, 0, 0, 0),
                                 _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
    return _mm512_cvtepu8_epi16(_mm512_castsi512_si256(four_apart));
  }
  static void store_pixels(uint8_t* to, V r, V g, V b) {
    // The bytes of 8 values and of 8 others, alternating.
    const V mixed = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    const V rg = _mm512_shuffle_epi8(_mm512_packus_epi16(r, g), mixed);
    const V bx = _mm512_shuffle_epi8(_mm512_packus_epi16(b, all16(255)), mixed);
    store(to, unpack_low16(rg, bx));
    store(to + 64, unpack_high16(rg, bx));
  }
};

}  // namespace

const BlockLoops kAvx512Blocks{"avx512",
                               Inverse<Avx512>::run,
                               Pixels<Avx512>::upsample_h2v1,
                               Pixels<Avx512>::upsample_h2v2,
                               Pixels<Avx512>::upsample_h1v2,
                               Pixels<Avx512>::colour,
                               Pixels<Avx512>::gray};

}  // namespace headrace
#endif
