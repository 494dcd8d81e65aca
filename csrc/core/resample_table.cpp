// Computes Pillow's resampling windows and weights in double precision, to the bit. Compile with -ffp-contract=off.
#include "resample_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace headrace {
namespace {

// Note [exact weights]
// Every expression below has the operations, the types and the order of precompute_coeffs and normalize_coeffs_8bpc in
// Pillow's Resample.c: a weight that differs in its last bit of 53 may round to another 22-bit integer. So no fused
// multiply-add, no reciprocal instead of a division, sums from left to right, and libm's sin and cos.

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double bilinear(double x) {
  x = std::fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double hamming(double x) {
  x = std::fabs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (0.54f + 0.46f * std::cos(x));  // float constants, as Pillow's
}

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

struct Kernel {
  double (*at)(double);
  double support;  // in source pixels of an enlargement
};

Kernel kernel_of(Filter filter) {
  switch (filter) {
    case Filter::kLanczos:
      return {lanczos, 3.0};
    case Filter::kBicubic:
      return {bicubic, 2.0};
    case Filter::kBox:
      return {box, 0.5};
    case Filter::kHamming:
      return {hamming, 1.0};
    default:
      return {bilinear, 1.0};
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

// Pillow's ImagingScaleAffine adds the scale up, so position i carries the rounding of all the positions before it.
template <class Visit>
void visit_nearest(int in, int out, int first, int count, Visit visit) {
  const double scale = static_cast<double>(in) / out;
  double at = scale * 0.5;
  for (int i = 0; i < first + count; ++i, at += scale) {
    if (i >= first) visit(i - first, std::min(static_cast<int>(at), in - 1));
  }
}

int32_t rounded(double weight) { return static_cast<int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << kWeightBits)); }

}  // namespace

Span source_span(int in, int out, Filter filter, int first, int count) {
  Span span{};
  if (filter == Filter::kNearest) {
    visit_nearest(in, out, first, count, [&](int i, int at) {
      if (i == 0) span.begin = at;
      span.end = at + 1;
    });
    return span;
  }
  const Axis axis(in, out, kernel_of(filter).support);
  return {axis.window(first).begin, axis.window(first + count - 1).end};
}

void ResampleTable::build(int in, int out, Filter filter, int first, int outputs, int origin) {
  count = outputs;
  const size_t padded = size_t(count + kTableBlock - 1) / kTableBlock * kTableBlock;
  start.resize(padded);
  taps.resize(padded);
  if (filter == Filter::kNearest) {
    taps_stride = 4;
    weight.assign(padded * 4, 0);
    visit_nearest(in, out, first, count, [&](int i, int at) {
      start[i] = at;
      taps[i] = 1;
      weight[size_t(i) * 4] = 1 << kWeightBits;
    });
  } else {
    const Kernel kernel = kernel_of(filter);
    const Axis axis(in, out, kernel.support);
    int most = 1;
    for (int i = 0; i < count; ++i) {
      const Span window = axis.window(first + i);
      start[i] = window.begin;
      taps[i] = window.size();
      most = std::max(most, taps[i]);
    }
    taps_stride = (most + 3) / 4 * 4;
    weight.assign(padded * taps_stride, 0);
    real_.resize(taps_stride);
    const double inverse = 1.0 / axis.filter_scale;
    for (int i = 0; i < count; ++i) {
      const double center = axis.center(first + i);
      double sum = 0.0;
      for (int t = 0; t < taps[i]; ++t) {
        real_[t] = kernel.at((t + start[i] - center + 0.5) * inverse);
        sum += real_[t];
      }
      int32_t* row = &weight[size_t(i) * taps_stride];
      for (int t = 0; t < taps[i]; ++t) row[t] = rounded(sum != 0.0 ? real_[t] / sum : real_[t]);
    }
  }
  for (int i = 0; i < count; ++i) start[i] -= origin;
  std::fill(start.begin() + count, start.end(), start[count - 1]);
  std::fill(taps.begin() + count, taps.end(), taps[count - 1]);
  block_reach = 0;
  for (size_t i = 0; i < padded; i += kTableBlock) {
    block_reach = std::max(block_reach, start[i + kTableBlock - 1] - start[i]);
  }
  split_weights();
}

void ResampleTable::split_weights() {
  const size_t groups = size_t(taps_stride) / 4, blocks = start.size() / kTableBlock;
  digits.resize(weight.size() * 3);
  int8_t* to = digits.data();
  for (size_t block = 0; block < blocks; ++block) {
    for (size_t group = 0; group < groups; ++group, to += 12 * kTableBlock) {
      for (size_t i = 0; i < kTableBlock; ++i) {
        const int32_t* from = &weight[((block * kTableBlock + i) * groups + group) * 4];
        uint32_t word[3] = {};
        for (int t = 0; t < 4; ++t) {
          // Digits from -128 to 127 are digits from 0 to 255 of the number that has 128 added to each.
          const uint32_t shifted = (static_cast<uint32_t>(from[t]) + 0x808080) ^ 0x808080;
          for (int d = 0; d < 3; ++d) word[d] |= (shifted >> (8 * d) & 0xff) << (8 * t);
        }
        for (size_t d = 0; d < 3; ++d) std::memcpy(to + (d * kTableBlock + i) * 4, &word[d], 4);
      }
    }
  }
}

}  // namespace headrace
