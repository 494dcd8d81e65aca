// Computes the windows and weights of torch's antialiased kernels for floats, to the bit. Compile with
// -ffp-contract=off.
#include "core/kernels/float_resize/float_table.h"

#include <algorithm>
#include <cmath>

#include "core/kernels/effects/tensor_math.h"

namespace headrace {
namespace {

// Note [float weights]
// torch keeps positions and weights in float32 and adds 0.5 in double, so each conversion below is one of torch's. With
// `kFused`, its compiler has fused the polynomials of the cubic filter.
struct Axis {
  float scale, support, inverse;
  int in;

  Axis(int in, int out, double reach)
      : scale(static_cast<float>(in) / static_cast<float>(out)),
        support(static_cast<float>(scale >= 1.0f ? reach * scale : reach)),
        inverse(scale >= 1.0f ? static_cast<float>(1.0 / scale) : 1.0f),
        in(in) {}
  float center(int i) const { return static_cast<float>(scale * (i + 0.5)); }
  Span window(int i) const {
    const float c = center(i);
    const int begin = std::max(static_cast<int>(c - support + 0.5), 0);
    const int most = static_cast<int>(std::ceil(support)) * 2 + 1;
    const int end = std::min(static_cast<int>(c + support + 0.5), in);
    return {begin, begin + std::clamp(end - begin, 1, most)};
  }
  float distance(int at, float center) const {
    return static_cast<float>((static_cast<float>(at) - center + 0.5) * inverse);
  }
};

float bilinear(float x) {
  x = std::fabs(x);
  return x < 1.0f ? 1.0f - x : 0.0f;
}

template <bool kFused>
float bicubic(float x) {
  constexpr float a = -0.5f;
  x = std::fabs(x);
  if (x < 1.0f) return added_product<kFused>(1.0f, added_product<kFused>(-(a + 3), a + 2, x) * x, x);
  if (x >= 2.0f) return 0.0f;
  return added_product<kFused>(-4 * a, added_product<kFused>(8 * a, added_product<kFused>(-5 * a, a, x), x), x);
}

double reach(Filter filter) { return is_cubic(filter) ? 2.0 : 1.0; }

template <class Weight>
void weigh(const Axis& axis, int first, FloatTable& table, Weight weight_at) {
  for (int i = 0; i < table.count; ++i) {
    const float center = axis.center(first + i);
    float* weight = &table.weight[static_cast<size_t>(i) * static_cast<size_t>(table.taps_stride)];
    float sum = 0.0f;
    for (int t = 0; t < table.taps[i]; ++t) {
      weight[t] = weight_at(axis.distance(table.start[i] + t, center));
      sum += weight[t];
    }
    if (sum == 0.0f) continue;
    for (int t = 0; t < table.taps[i]; ++t) weight[t] /= sum;
  }
}

}  // namespace

Span float_span(int in, int out, Filter filter, int first, int count) {
  const Axis axis(in, out, reach(filter));
  return {axis.window(first).begin, axis.window(first + count - 1).end};
}

void FloatTable::build(int in, int out, Filter filter, int first, int outputs, int origin) {
  const Axis axis(in, out, reach(filter));
  count = outputs;
  fused = is_fused(filter);
  start.resize(static_cast<size_t>(count));
  taps.resize(static_cast<size_t>(count));
  taps_stride = 1;
  for (int i = 0; i < count; ++i) {
    const Span window = axis.window(first + i);
    start[i] = window.begin;
    taps[i] = window.size();
    taps_stride = std::max(taps_stride, taps[i]);
  }
  weight.resize(static_cast<size_t>(count) * static_cast<size_t>(taps_stride));
  if (is_cubic(filter)) {
    fused ? weigh(axis, first, *this, bicubic<true>) : weigh(axis, first, *this, bicubic<false>);
  } else {
    weigh(axis, first, *this, bilinear);
  }
  for (int i = 0; i < count; ++i) start[i] -= origin;
}

}  // namespace headrace
