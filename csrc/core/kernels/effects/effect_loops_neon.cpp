// The inner loops of effects for NEON.
#include <arm_neon.h>

#include "core/kernels/effects/effect_loops_vector.h"

namespace headrace {
namespace {

/// A table of 256 bytes in four groups of registers; each looks up indices below 64 and gives zero for all others.
struct Table {
  uint8x16x4_t quarter[4];

  explicit Table(const uint8_t* entries) {
    for (int i = 0; i < 4; ++i) quarter[i] = vld1q_u8_x4(entries + 64 * i);
  }
  uint8x16_t operator()(uint8x16_t bytes) const {
    uint8x16_t found = vqtbl4q_u8(quarter[0], bytes);
    for (int i = 1; i < 4; ++i) {
      bytes = vsubq_u8(bytes, vdupq_n_u8(64));  // below 0: wraps to 192 or more
      found = vqtbx4q_u8(found, quarter[i], bytes);
    }
    return found;
  }
};

// One table at a time fits the register file.
void look_up(uint8_t* pixels, size_t count, const uint8_t* tables) {
  PixelBlock block{};
  constexpr size_t kStep = 16, kGroups = kBlock / kStep;
  for (; count > 0;) {
    const size_t n = count < kBlock ? count : kBlock;
    std::memcpy(block.pixel, pixels, n * kPixelBytes);
    auto* bytes = reinterpret_cast<uint8_t*>(block.pixel);
    uint8x16x4_t rgbx[kGroups];
    for (size_t i = 0; i < kGroups; ++i) rgbx[i] = vld4q_u8(bytes + i * kStep * kPixelBytes);
    for (int c = 0; c < 3; ++c) {
      const Table table(tables + 256 * c);
      for (auto& group : rgbx) group.val[c] = table(group.val[c]);
    }
    for (size_t i = 0; i < kGroups; ++i) {
      rgbx[i].val[3] = vdupq_n_u8(0);
      vst4q_u8(bytes + i * kStep * kPixelBytes, rgbx[i]);
    }
    std::memcpy(pixels, block.pixel, n * kPixelBytes);
    pixels += n * kPixelBytes;
    count -= n;
  }
}

}  // namespace

const EffectLoops kNeonEffects{gray,
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
