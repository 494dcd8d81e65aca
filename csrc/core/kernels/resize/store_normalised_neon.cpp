// The store for NEON: normalised float32 is computed, as normalisation.h says; everything else goes through the table.
#include <arm_neon.h>

#include "core/base/geometry.h"
#include "core/kernels/resize/kernel_sets.h"
#include "core/kernels/resize/normalisation.h"

namespace headrace {
namespace {

constexpr int kStep = 16;  // pixels

/// The constants of one channel.
struct Constants {
  float mean, deviation, inverse;
};

float32x4_t divided(float32x4_t value, float by, float inverse) {
  const float32x4_t near = vmulq_n_f32(value, inverse);
  return vfmaq_n_f32(near, vfmsq_n_f32(value, near, by), inverse);
}

float32x4_t normalised(uint32x4_t bytes, const Constants& of) {
  const float32x4_t unit = divided(vcvtq_f32_u32(bytes), 255.0F, kByteInverse);
  return divided(vsubq_f32(unit, vdupq_n_f32(of.mean)), of.deviation, of.inverse);
}

uint8x16_t backwards(uint8x16_t v) {
  const uint8x16_t halves = vrev64q_u8(v);
  return vextq_u8(halves, halves, 8);
}

/// Elements 4 i to 4 i + 3 of 16.
void quarters(uint8x16_t bytes, const Constants& of, float32x4_t (&made)[4]) {
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
  made[0] = normalised(vmovl_u16(vget_low_u16(low)), of);
  made[1] = normalised(vmovl_high_u16(low), of);
  made[2] = normalised(vmovl_u16(vget_low_u16(high)), of);
  made[3] = normalised(vmovl_high_u16(high), of);
}

/// Stores whole groups of pixels from the left, as the table of this normalisation would. Returns their number.
template <bool kPlanar>
int store_normalised(const uint8_t* row, int pixels, bool mirror, const Normalisation& by, const RowTarget& target) {
  Constants of[3];
  for (int c = 0; c < 3; ++c) of[c] = {by.mean[c], by.deviation[c], by.inverse[c]};
  int x = 0;
  for (; x + kStep <= pixels; x += kStep) {
    const uint8x16x4_t rgbx = vld4q_u8(row + ptrdiff_t(mirror ? pixels - kStep - x : x) * kPixelBytes);
    float32x4_t made[3][4];
    for (int c = 0; c < 3; ++c) quarters(mirror ? backwards(rgbx.val[c]) : rgbx.val[c], of[c], made[c]);
    for (int i = 0; i < 4; ++i) {
      if constexpr (kPlanar) {
        for (int c = 0; c < 3; ++c)
          vst1q_f32(reinterpret_cast<float*>(target.base + c * target.channel_stride) + x + 4 * i, made[c][i]);
      } else {
        const float32x4x3_t pixels{{made[0][i], made[1][i], made[2][i]}};
        vst3q_f32(reinterpret_cast<float*>(target.base) + 3 * (x + 4 * i), pixels);
      }
    }
  }
  return x;
}

}  // namespace

void store_normalised_neon(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut,
                           const RowTarget& target) {
  constexpr ptrdiff_t kBytes = sizeof(float);
  int done = 0;
  if (lut.normalisation != nullptr && plane_stride == 0) {
    if (target.pixel_stride == kBytes)
      done = store_normalised<true>(row, pixels, mirror, *lut.normalisation, target);
    else if (target.pixel_stride == 3 * kBytes && target.channel_stride == kBytes)
      done = store_normalised<false>(row, pixels, mirror, *lut.normalisation, target);
  }
  if (done == pixels) return;
  RowTarget rest = target;
  rest.base += done * target.pixel_stride;
  kScalarKernels.store(row + (mirror ? 0 : ptrdiff_t(done) * kPixelBytes), plane_stride, pixels - done, mirror, lut,
                       rest);
}

}  // namespace headrace
