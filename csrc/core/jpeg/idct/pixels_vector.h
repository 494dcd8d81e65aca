// Fancy upsampling and colour conversion, for the instruction set S of the file that includes it. All definitions are
// internal to that file.
//
// Note [16-bit colours]: libjpeg's products have 16 bits of fraction. Those of red and blue are made by
// multiply_round(a, b) = (2 a b + 2^15) >> 16, which gives the same for all 256 values of Cr and of Cb:
//   91881 Cr = 65536 Cr + 26345 Cr, of which 2 * 13173 Cr is near enough;   116130 Cb = 2 * 65536 Cb - 2 * 7471 Cb.
// Green is one rounded sum of two products, which needs 32 bits.
#pragma once

#include "core/jpeg/idct/block_loops.h"

namespace headrace {
namespace {

template <class S>
struct Pixels {
  using V = typename S::V;

  /// Values of a row with their two neighbours. An output is three quarters of the nearer value and a quarter of the
  /// other.
  struct Neighbours {
    V here, before, after;
  };

  static void store_widened(const Neighbours& n, int even_rounding, int odd_rounding, int shift, uint8_t* to) {
    const V three = S::times3(n.here);
    const V even = S::shift_right16(S::add16(S::add16(three, n.before), S::all16(even_rounding)), shift);
    const V odd = S::shift_right16(S::add16(S::add16(three, n.after), S::all16(odd_rounding)), shift);
    S::store(to, S::either(even, S::shift_left16(odd, 8)));
  }

  static void upsample_h2v1(const uint8_t* row, int count, uint8_t* to) {
    for (int i = 0; i < count; i += S::kWords)
      store_widened({S::load_words(row + i), S::load_words(row + i - 1), S::load_words(row + i + 1)}, 1, 2, 2,
                    to + 2 * i);
  }

  static V column(const uint8_t* near, const uint8_t* far) {
    return S::add16(S::times3(S::load_words(near)), S::load_words(far));
  }

  static void upsample_h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* to) {
    for (int i = 0; i < count; i += S::kWords) {
      const uint8_t *n = near + i, *f = far + i;
      store_widened({column(n, f), column(n - 1, f - 1), column(n + 1, f + 1)}, 8, 7, 4, to + 2 * i);
    }
  }

  static void upsample_h1v2(const uint8_t* near, const uint8_t* far, int rounding, int count, uint8_t* to) {
    const V add = S::all16(rounding);
    for (int i = 0; i < count; i += S::kWords)
      S::store_words(to + i, S::shift_right16(S::add16(column(near + i, far + i), add), 2));
  }

  static void colour(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int count, uint8_t* pixels) {
    const V middle = S::all16(128), by_red = S::all16(13173), by_blue = S::all16(-7471);
    const V by_green = S::pairs(-22554, 65536 - 46802), half = S::all32(32768);
    for (int i = 0; i < count; i += S::kWords) {
      const V light = S::load_pixels(y + i);
      const V u = S::subtract16(S::load_pixels(cb + i), middle), v = S::subtract16(S::load_pixels(cr + i), middle);
      const V r = S::add16(S::add16(light, v), S::multiply_round(v, by_red));
      const V b = S::add16(S::add16(light, S::add16(u, u)), S::multiply_round(u, by_blue));
      const V low = S::multiply_add(S::unpack_low16(u, v), by_green, half);
      const V high = S::multiply_add(S::unpack_high16(u, v), by_green, half);
      const V green = S::saturated16(S::shift_right32(low, 16), S::shift_right32(high, 16));
      const V g = S::add16(S::subtract16(light, v), green);
      S::store_pixels(pixels + 4 * i, r, g, b);
    }
  }

  static void gray(const uint8_t* y, int count, uint8_t* pixels) {
    for (int i = 0; i < count; i += S::kWords) {
      const V light = S::load_pixels(y + i);
      S::store_pixels(pixels + 4 * i, light, light, light);
    }
  }
};

}  // namespace
}  // namespace headrace
