// Computes Pillow's and torch's resampling windows and weights in double precision, to the bit. Compile with
// -ffp-contract=off.
#include "core/kernels/resize/resample_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/base/pixel_math.h"

namespace headrace {
namespace {

// Note [exact weights]
// Every expression below has the operations, the types and the order of precompute_coeffs and normalize_coeffs_8bpc in
// Pillow's Resample.c: a weight that differs in its last bit of 53 may round to another 22-bit integer. So
// multiply-adds are fused only where Pillow's are (pillow_sum), no division is replaced by a reciprocal, sums go from
// left to right, and sin and cos are libm's.

// The filters: their value at x, and half their width in source pixels in an enlargement.
struct BoxShape {
  static constexpr double kSupport = 0.5;
  static double at(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }
};

struct Bilinear {
  static constexpr double kSupport = 1.0;
  static double at(double x) { return std::max(1.0 - std::fabs(x), 0.0); }
};

struct Hamming {
  static constexpr double kSupport = 1.0;
  static double at(double x) {
    x = std::fabs(x);
    if (x == 0.0) return 1.0;
    if (x >= 1.0) return 0.0;
    x *= std::numbers::pi;
    return std::sin(x) / x * pillow_sum(double{0.54f}, double{0.46f}, std::cos(x));  // float constants, as Pillow's
  }
};

struct Bicubic {
  static constexpr double kSupport = 2.0;
  static double at(double x) {
    constexpr double a = -0.5;
    x = std::fabs(x);
    if (x < 1.0) return pillow_sum(1.0, pillow_sum(-(a + 3.0), a + 2.0, x) * x, x);
    if (x < 2.0) return pillow_sum(-4.0, pillow_sum(8.0, x - 5, x), x) * a;
    return 0.0;
  }
};

struct Lanczos {
  static constexpr double kSupport = 3.0;
  static double sinc(double x) {
    if (x == 0.0) return 1.0;
    x *= std::numbers::pi;
    return std::sin(x) / x;
  }
  static double at(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }
};

/// Calls `visit` with the shape of a filter that mixes pixels.
template <class Visit>
auto with_shape(Filter filter, Visit visit) {
  switch (filter) {
    case Filter::kLanczos:
      return visit(Lanczos{});
    case Filter::kBicubic:
    case Filter::kTensorBicubic:
      return visit(Bicubic{});
    case Filter::kBox:
      return visit(BoxShape{});
    case Filter::kHamming:
      return visit(Hamming{});
    default:
      return visit(Bilinear{});
  }
}

struct Axis {
  double scale, filter_scale, support;
  int in;

  Axis(int in, int out, double filter_support)
      : scale(static_cast<double>(in) / out),
        filter_scale(scale < 1.0 ? 1.0 : scale),
        support(filter_support * filter_scale),
        in(in) {}
  double center(int i) const { return (i + 0.5) * scale; }
  Span window(int i) const {
    const double c = center(i);
    return {std::max(static_cast<int>(c - support + 0.5), 0), std::min(static_cast<int>(c + support + 0.5), in)};
  }
};

// Pillow's ImagingScaleAffine accumulates the scale, so position i has the rounding errors of all positions before it.
// torch rounds each position to float32.
template <class Visit>
void visit_nearest(int in, int out, Filter filter, int first, int count, Visit visit) {
  if (filter != Filter::kNearest) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    const double half = filter == Filter::kTensorNearestExact ? 0.5 : 0.0;
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<float>((first + i + half) * scale);
      visit(i, std::min(static_cast<int>(at), in - 1));
    }
    return;
  }
  const double scale = static_cast<double>(in) / out;
  double at = scale * 0.5;
  for (int i = 0; i < first + count; ++i, at += scale) {
    if (i >= first) visit(i - first, std::min(static_cast<int>(at), in - 1));
  }
}

// A weight rounded to a multiple of 2^-bits, in units of 2^-22.
int32_t rounded(double weight, int bits) {
  return static_cast<int32_t>(std::copysign(0.5, weight) + weight * (1 << bits)) * (1 << (kWeightBits - bits));
}

// Note [short weights]
// torch's kernels for bytes have 16-bit weights, with as many fraction bits as the largest weight of the axis permits.
// In units of 2^-22 their lowest bits are zero, and sums are rounded at the same bit, so the loops are the same.
template <class Shape>
int short_weight_bits(int in, int out) {
  const Axis axis(in, out, Shape::kSupport);
  const double inverse = 1.0 / axis.filter_scale;
  double largest = 0;
  for (int i = 0; i < out; ++i) {
    const Span window = axis.window(i);
    double sum = 0, top = 0;
    for (int at = window.begin; at < window.end; ++at) {
      const double value = Shape::at((at - axis.center(i) + 0.5) * inverse);
      sum += value;
      top = std::max(top, value);
    }
    if (sum != 0) largest = std::max(largest, top / sum);
  }
  int bits = 0;
  while (bits < kWeightBits && static_cast<int>(0.5 + largest * (1 << (bits + 1))) < 1 << 15) ++bits;
  return bits;
}

size_t padded(int count) { return size_t(count + kTableBlock - 1) / kTableBlock * kTableBlock; }

}  // namespace

Span source_span(int in, int out, Filter filter, int first, int count) {
  if (!is_nearest(filter)) {
    return with_shape(filter, [&](auto shape) -> Span {
      const Axis axis(in, out, shape.kSupport);
      return {axis.window(first).begin, axis.window(first + count - 1).end};
    });
  }
  Span span{};
  visit_nearest(in, out, filter, first, count, [&](int i, int at) {
    if (i == 0) span.begin = at;
    span.end = at + 1;
  });
  return span;
}

void ResampleTable::build(int in, int out, Filter filter, int first, int outputs, int origin) {
  count = outputs;
  start.resize(padded(count));
  taps.resize(padded(count));
  if (is_nearest(filter)) {
    nearest(in, out, filter, first);
  } else {
    with_shape(filter, [&](auto shape) {
      using Shape = decltype(shape);
      weigh<Shape>(in, out, first, is_pillow_filter(filter) ? kWeightBits : short_weight_bits<Shape>(in, out));
    });
  }
  finish(origin);
}

void ResampleTable::nearest(int in, int out, Filter filter, int first) {
  taps_stride = 4;
  weight.resize(start.size() * 4);
  std::memset(weight.data(), 0, weight.size() * sizeof(int32_t));
  visit_nearest(in, out, filter, first, count, [&](int i, int at) {
    start[i] = at;
    taps[i] = 1;
    weight[size_t(i) * 4] = 1 << kWeightBits;
  });
}

// Sixteen outputs at a time and no branches, so that the compiler vectorises the loops.
template <class Shape>
void ResampleTable::weigh(int in, int out, int first, int bits) {
  const Axis axis(in, out, Shape::kSupport);
  const double inverse = 1.0 / axis.filter_scale;
  // Locals, since the compiler must assume that writes to an array of integers alias the members.
  const int outputs = count;
  int32_t *const start = this->start.data(), *const taps = this->taps.data();
  int most = 1;
  for (int i = 0; i < outputs; ++i) {
    const Span window = axis.window(first + i);
    start[i] = window.begin;
    taps[i] = window.size();
    most = std::max(most, taps[i]);
  }
  const int stride = (most + 3) / 4 * 4;
  taps_stride = stride;
  weight.resize(this->start.size() * stride);
  real_.resize(size_t(stride) * kTableBlock);
  for (int block = 0; block < outputs; block += kTableBlock) {
    double center[kTableBlock], from[kTableBlock], length[kTableBlock], sum[kTableBlock] = {};
    for (int i = 0; i < kTableBlock; ++i) {
      const bool exists = block + i < outputs;
      center[i] = axis.center(first + block + i);
      from[i] = exists ? start[block + i] : 0;
      length[i] = exists ? taps[block + i] : 0;
    }
    for (int t = 0; t < most; ++t) {
      double* real = &real_[size_t(t) * kTableBlock];
      for (int i = 0; i < kTableBlock; ++i) {
        const double value = Shape::at((t + from[i] - center[i] + 0.5) * inverse);
        real[i] = t < length[i] ? value : 0.0;  // adding 0.0 does not change the sum
        sum[i] += real[i];
      }
    }
    for (int i = 0; i < kTableBlock; ++i) sum[i] = sum[i] != 0.0 ? sum[i] : 1.0;
    int32_t* to = &weight[size_t(block) * stride];
    for (int t = 0; t < most; ++t) {
      const double* real = &real_[size_t(t) * kTableBlock];
      int32_t whole[kTableBlock];
      for (int i = 0; i < kTableBlock; ++i) whole[i] = rounded(real[i] / sum[i], bits);
      for (int i = 0; i < kTableBlock; ++i) to[i * stride + t] = whole[i];
    }
    for (int i = 0; i < kTableBlock; ++i) std::fill(to + i * stride + most, to + (i + 1) * stride, 0);
  }
}

void ResampleTable::finish(int origin) {
  for (int i = 0; i < count; ++i) start[i] -= origin;
  std::fill(start.data() + count, start.data() + start.size(), start[count - 1]);
  std::fill(taps.data() + count, taps.data() + taps.size(), taps[count - 1]);
  near.resize(start.size());
  for (size_t block = 0; block < start.size(); block += kTableBlock) {
    const int32_t* from = &start[block];
    for (int i = 0; i < kTableBlock; ++i) {
      near[block + i] = 0x0c080400 + 0x01010101 * static_cast<uint32_t>((from[i] - from[0]) * 4);
    }
  }

  const size_t groups = size_t(taps_stride) / 4;
  digits.resize(weight.size() * 3);
  int8_t* to = digits.data();
  for (size_t block = 0; block < start.size(); block += kTableBlock) {
    for (size_t group = 0; group < groups; ++group, to += 12 * kTableBlock) {
      uint32_t word[3][kTableBlock];
      for (size_t i = 0; i < kTableBlock; ++i) {
        const int32_t* four = &weight[((block + i) * groups + group) * 4];
        // Adding 128 to each digit makes all digits 0 to 255; flipping their top bits subtracts 128 again.
        const auto shifted = [&](int t) { return (static_cast<uint32_t>(four[t]) + 0x808080) ^ 0x808080; };
        const uint32_t a = shifted(0), b = shifted(1), c = shifted(2), d = shifted(3);
        word[0][i] = (a & 0xff) | (b & 0xff) << 8 | (c & 0xff) << 16 | d << 24;
        word[1][i] = (a >> 8 & 0xff) | (b & 0xff00) | (c & 0xff00) << 8 | (d & 0xff00) << 16;
        word[2][i] = (a >> 16 & 0xff) | (b >> 8 & 0xff00) | (c & 0xff0000) | (d & 0xff0000) << 8;
      }
      std::memcpy(to, word, sizeof word);
    }
  }
}

}  // namespace headrace
