// torchvision's affine map of a byte tensor, for single pixels: positions by a matrix product, pixels there by
// grid_sample, both in torch's float32 with zeros around the image. torch rounds a sum with a product once or twice,
// depending on its instruction set and its matrix library: `kFused` and TensorWarp::fused_positions.
#pragma once

#include <cmath>
#include <cstring>

#include "core/base/geometry.h"
#include "core/kernels/effects/tensor_math.h"
#include "core/plan/plan.h"

namespace headrace {

/// Maps an image of RGBX rows without gaps into another one of the same size; they must not overlap. One function per
/// instruction set; all give the same bytes.
using RunTensorWarp = void (*)(const TensorWarp& warp, const uint8_t* from, Size size, uint8_t* to);

void run_tensor_warp_scalar(const TensorWarp& warp, const uint8_t* from, Size size, uint8_t* to);
#if defined(__x86_64__) || defined(_M_X64)
void run_tensor_warp_avx2(const TensorWarp& warp, const uint8_t* from, Size size, uint8_t* to);
void run_tensor_warp_avx512(const TensorWarp& warp, const uint8_t* from, Size size, uint8_t* to);
#endif
void run_tensor_warp_neon(const TensorWarp& warp, const uint8_t* from, Size size, uint8_t* to);

/// The matrix in torch's units: from the centre, in halves of the image's width and height.
static inline std::array<float, 6> tensor_matrix(const TensorWarp& warp, Size size) {
  const float half_width = 0.5f * static_cast<float>(size.width), half_height = 0.5f * static_cast<float>(size.height);
  const std::array<float, 6>& m = warp.matrix;
  return {m[0] / half_width,  m[1] / half_width,  m[2] / half_width,
          m[3] / half_height, m[4] / half_height, m[5] / half_height};
}

/// The distance of a pixel's centre from that of the image.
static inline float from_centre(int at, int length) {
  return static_cast<float>(at) - 0.5f * static_cast<float>(length - 1);
}

/// One coordinate in torch's units, of the pixel at (x, y) from the centre. `m`: half of a matrix.
template <bool kFused>
static inline float tensor_coordinate(const float* m, float x, float y) {
  return added_product<kFused>(x * m[0], y, m[1]) + m[2];
}

/// The same in pixels; 0: the centre of the first one. Clamped to positions outside the image that read nothing.
template <bool kFused>
static inline float tensor_position(float coordinate, int length) {
  const float half = 0.5f * static_cast<float>(length);
  const float at = kFused ? fused(coordinate + 1.0f, half, -0.5f) : (coordinate + 1.0f) * half - 0.5f;
  const float most = static_cast<float>(length) + 1.0f;
  return at > -2.0f ? (at < most ? at : most) : -2.0f;
}

/// The weights of the four pixels around a position: top left, top right, bottom left, bottom right.
struct TensorWeights {
  float of[4];

  TensorWeights(float x, float y) {
    const float right = x - std::floor(x), left = 1.0f - right, bottom = y - std::floor(y), top = 1.0f - bottom;
    of[0] = left * top;
    of[1] = right * top;
    of[2] = left * bottom;
    of[3] = right * bottom;
  }
};

/// The sum of four weighted values.
template <bool kFused>
static inline float tensor_mixed(const float (&values)[4], const float (&weights)[4]) {
  float sum = values[0] * weights[0];
  for (int k = 1; k < 4; ++k) sum = added_product<kFused>(sum, values[k], weights[k]);
  return sum;
}

/// A mixed value with the fill where `share` of the weights is outside the image.
static inline float tensor_filled(const TensorWarp& warp, float value, float inside, float fill) {
  if (!warp.filled) return value;
  return warp.first_version ? value * inside + (1.0f - inside) * fill : (value - fill) * inside + fill;
}

/// The three values at a position, before they are rounded and without the fill, and the weight of pixels of the image.
template <bool kFused>
static inline std::array<float, 4> tensor_sampled(const uint8_t* from, Size size, float x, float y) {
  const TensorWeights weights(x, y);
  const int column = static_cast<int>(std::floor(x)), row = static_cast<int>(std::floor(y));
  float values[4][4] = {};  // of red, green, blue; 1 inside the image
  for (int k = 0; k < 4; ++k) {
    const int at_x = column + k % 2, at_y = row + k / 2;
    if (at_x < 0 || at_y < 0 || at_x >= size.width || at_y >= size.height) continue;
    const size_t number = static_cast<size_t>(at_y) * static_cast<size_t>(size.width) + static_cast<size_t>(at_x);
    for (int c = 0; c < 3; ++c) values[c][k] = from[number * kPixelBytes + static_cast<size_t>(c)];
    values[3][k] = 1.0f;
  }
  std::array<float, 4> mixed;
  for (size_t c = 0; c < 4; ++c) mixed[c] = tensor_mixed<kFused>(values[c], weights.of);
  return mixed;
}

}  // namespace headrace
