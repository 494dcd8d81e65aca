// Transforms of several columns at once, one per lane of a register, by the operations of
// headrace._recipe.arithmetic.fourier. The file of each instruction set defines kLanes and includes this header; all
// definitions are internal to that file.
#pragma once

#include "core/kernels/textures/texture.h"

namespace headrace {
namespace {

// A vector with elementwise arithmetic, which compilers map to registers of any width. May alias the arrays of doubles
// that contain it.
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double)), may_alias));

/// Complex values, one per lane: [length] real and imaginary parts.
struct LaneArray {
  Lanes* real;
  Lanes* imaginary;
};

/// The transform of odd length `radix` of a + b i; changes `a` and `b`. `step`: between angles of 2 pi / radix.
[[gnu::always_inline]] inline void odd_butterfly(int radix, Lanes* a, Lanes* b, Lanes* made_a, Lanes* made_b,
                                                 const FourierTablesView& fourier, int step) {
  const int half = radix / 2;
  Lanes first_a = a[0], first_b = b[0];
  for (int k = 1; k <= half; ++k) {
    const Lanes other_a = a[radix - k], other_b = b[radix - k];
    a[radix - k] = a[k] - other_a;
    b[radix - k] = b[k] - other_b;
    a[k] += other_a;
    b[k] += other_b;
    first_a += a[k];
    first_b += b[k];
  }
  made_a[0] = first_a;
  made_b[0] = first_b;
  for (int j = 1; j <= half; ++j) {
    Lanes even_a = a[0], even_b = b[0], odd_a{}, odd_b{};
    int angle = 0;
    for (int k = 1; k <= half; ++k) {
      angle += j;
      if (angle >= radix) angle -= radix;
      const double c = fourier.cosine[angle * step], s = fourier.sine[angle * step];
      even_a += a[k] * c;
      even_b += b[k] * c;
      odd_a = k == 1 ? a[radix - k] * s : odd_a + a[radix - k] * s;
      odd_b = k == 1 ? b[radix - k] * s : odd_b + b[radix - k] * s;
    }
    made_a[j] = even_a + odd_b;
    made_b[j] = even_b - odd_a;
    made_a[radix - j] = even_a - odd_b;
    made_b[radix - j] = even_b + odd_a;
  }
}

/// The transform of length `radix`; `a` and `b` may be changed.
[[gnu::always_inline]] inline void butterfly(int radix, Lanes* a, Lanes* b, Lanes* made_a, Lanes* made_b,
                                             const FourierTablesView& fourier) {
  if (radix == 2) {
    made_a[0] = a[0] + a[1], made_b[0] = b[0] + b[1];
    made_a[1] = a[0] - a[1], made_b[1] = b[0] - b[1];
  } else if (radix == 4) {
    const Lanes even_a = a[0] + a[2], even_b = b[0] + b[2], off_even_a = a[0] - a[2], off_even_b = b[0] - b[2];
    const Lanes odd_a = a[1] + a[3], odd_b = b[1] + b[3], off_odd_a = a[1] - a[3], off_odd_b = b[1] - b[3];
    made_a[0] = even_a + odd_a, made_b[0] = even_b + odd_b;
    made_a[1] = off_even_a + off_odd_b, made_b[1] = off_even_b - off_odd_a;
    made_a[2] = even_a - odd_a, made_b[2] = even_b - odd_b;
    made_a[3] = off_even_a - off_odd_b, made_b[3] = off_even_b + off_odd_a;
  } else {
    odd_butterfly(radix, a, b, made_a, made_b, fourier, fourier.length / radix);
  }
}

/// One pass of Stockham's order. Combines values `after * stride` apart. `values`: four arrays of `radix` values.
[[gnu::always_inline]] inline void pass(int radix, const LaneArray& from, const LaneArray& to,
                                        const FourierTablesView& fourier, int after, int stride, Lanes* values) {
  Lanes *a = values, *b = values + radix, *made_a = values + 2 * radix, *made_b = values + 3 * radix;
  for (int p = 0; p < after; ++p) {
    for (int q = 0; q < stride; ++q) {
      for (int j = 0; j < radix; ++j) {
        a[j] = from.real[q + stride * (p + after * j)];
        b[j] = from.imaginary[q + stride * (p + after * j)];
      }
      butterfly(radix, a, b, made_a, made_b, fourier);
      const int at = q + stride * radix * p;
      to.real[at] = made_a[0];
      to.imaginary[at] = made_b[0];
      for (int j = 1; j < radix; ++j) {
        if (after > 1) {
          const double c = fourier.cosine[p * j * stride], s = fourier.sine[p * j * stride];
          to.real[at + stride * j] = made_a[j] * c + made_b[j] * s;
          to.imaginary[at + stride * j] = made_b[j] * c - made_a[j] * s;
        } else {
          to.real[at + stride * j] = made_a[j];
          to.imaginary[at + stride * j] = made_b[j];
        }
      }
    }
  }
}

template <int radix>
void pass_of(const LaneArray& from, const LaneArray& to, const FourierTablesView& fourier, int after, int stride) {
  Lanes values[4 * radix];
  pass(radix, from, to, fourier, after, stride, values);
}

/// Transforms `values`. The result is in the returned array, which is `values` or `other`; both are changed.
/// `butterfly_scratch`: memory for the butterfly of a radix above 7, four arrays of its length.
LaneArray fourier_transform(const LaneArray& values, const LaneArray& other, const FourierTablesView& fourier,
                            Lanes* butterfly_scratch) {
  LaneArray from = values, to = other;
  int after = fourier.length, stride = 1;
  for (int i = 0; i < fourier.passes; ++i) {
    const int radix = fourier.radices[i];
    after /= radix;
    switch (radix) {
      case 2:
        pass_of<2>(from, to, fourier, after, stride);
        break;
      case 3:
        pass_of<3>(from, to, fourier, after, stride);
        break;
      case 4:
        pass_of<4>(from, to, fourier, after, stride);
        break;
      case 5:
        pass_of<5>(from, to, fourier, after, stride);
        break;
      case 7:
        pass_of<7>(from, to, fourier, after, stride);
        break;
      default:
        pass(radix, from, to, fourier, after, stride, butterfly_scratch);
    }
    stride *= radix;
    const LaneArray done = to;
    to = from;
    from = done;
  }
  return from;
}

}  // namespace
}  // namespace headrace
