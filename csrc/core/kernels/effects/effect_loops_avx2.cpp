// The inner loops of effects for AVX2.
#if defined(__x86_64__) || defined(_M_X64)
#include "core/kernels/effects/effect_loops_vector.h"

namespace headrace {
namespace {

void look_up(uint8_t* pixels, size_t count, const uint8_t* tables) {
  for (size_t i = 0; i < count; ++i, pixels += kPixelBytes) {
    uint32_t pixel = 0;
    std::memcpy(&pixel, pixels, kPixelBytes);
    pixel = pack_rgbx(tables[red(pixel)], tables[256 + green(pixel)], tables[512 + blue(pixel)]);
    std::memcpy(pixels, &pixel, kPixelBytes);
  }
}

}  // namespace

const EffectLoops kAvx2Effects{gray,
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
