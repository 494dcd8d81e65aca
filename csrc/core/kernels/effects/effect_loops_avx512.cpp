// The inner loops of effects for AVX-512.
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#include "core/kernels/effects/effect_loops_vector.h"

namespace headrace {
namespace {

struct Table {
  __m512i quarter[4];

  explicit Table(const uint8_t* entries) {
    for (int i = 0; i < 4; ++i) quarter[i] = _mm512_loadu_si512(entries + 64 * i);
  }
  /// Looks up 64 bytes: bit 6 selects the quarter within a half, bit 7 the half.
  __m512i operator()(__m512i bytes) const {
    const __m512i low = _mm512_permutex2var_epi8(quarter[0], bytes, quarter[1]);
    const __m512i high = _mm512_permutex2var_epi8(quarter[2], bytes, quarter[3]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(bytes), high);
  }
};

void look_up(uint8_t* pixels, size_t count, const uint8_t* tables) {
  const Table red_table(tables), green_table(tables + 256), blue_table(tables + 512);
  constexpr size_t kAtOnce = 16;
  for (; count > 0; pixels += kAtOnce * kPixelBytes) {
    const size_t n = count < kAtOnce ? count : kAtOnce;
    const auto some = static_cast<__mmask16>((1u << n) - 1);
    const __m512i bytes = _mm512_maskz_loadu_epi32(some, pixels);
    __m512i changed = red_table(bytes);
    changed = _mm512_mask_mov_epi8(changed, 0x2222222222222222, green_table(bytes));
    changed = _mm512_mask_mov_epi8(changed, 0x4444444444444444, blue_table(bytes));
    _mm512_mask_storeu_epi32(pixels, some, changed);
    count -= n;
  }
}

}  // namespace

const EffectLoops kAvx512Effects{gray,
                                 change_saturation,
                                 turn_hue,
                                 permute,
                                 look_up,
                                 sum_of_luma,
                                 add_to_histograms,
                                 convolve,
                                 round,
                                 sharpen,
                                 box,
                                 add_weighted,
                                 blend_sums,
                                 blend,
                                 tensor_change_saturation,
                                 tensor_gray_sum,
                                 tensor_sharpen,
                                 tensor_turn_hue};

}  // namespace headrace
#endif
