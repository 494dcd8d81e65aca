// torchvision's affine map of a byte tensor in blocks of outputs. Compilers vectorise the loops, except those that load
// pixels. The file of each instruction set includes this header; all definitions are internal to that file.
#pragma once

#include <array>

#include "core/kernels/warp/tensor_warp.h"
#include "core/kernels/warp/warp_positions.h"

namespace headrace {
namespace {

/// The positions in the source image of a block of outputs.
struct TensorPositions {
  alignas(64) float x[kBlock], y[kBlock];
};

template <bool kFused>
inline void map_tensor_to_source(const TensorWarp& warp, const std::array<float, 6>& m, int x, int y, Size size,
                                 TensorPositions& positions) {
  const float v = from_centre(y, size.height);
  const auto find = [&](auto how) {
    constexpr bool kFusedPositions = decltype(how)::value;
    for (int i = 0; i < kBlock; ++i) {
      const float u = from_centre(x + i, size.width);
      positions.x[i] = tensor_position<kFused>(tensor_coordinate<kFusedPositions>(m.data(), u, v), size.width);
      positions.y[i] = tensor_position<kFused>(tensor_coordinate<kFusedPositions>(m.data() + 3, u, v), size.height);
    }
  };
  warp.fused_positions ? find(std::true_type{}) : find(std::false_type{});
}

inline void nearest_of_tensor(const TensorPositions& positions, const Picture& picture, int count, uint32_t fill,
                              uint8_t* to) {
  alignas(64) uint32_t numbers[kBlock], inside[kBlock], pixels[kBlock];
  const auto width = static_cast<float>(picture.size.width), height = static_cast<float>(picture.size.height);
  for (int i = 0; i < kBlock; ++i) {
    const float x = std::nearbyint(positions.x[i]), y = std::nearbyint(positions.y[i]);
    const bool in = (x > -1.0f) & (y > -1.0f) & (x < width) & (y < height);
    inside[i] = in;
    numbers[i] = in ? static_cast<uint32_t>(static_cast<int>(y)) * static_cast<uint32_t>(picture.size.width) +
                          static_cast<uint32_t>(static_cast<int>(x))
                    : 0;
  }
  gather(picture, numbers, count, reinterpret_cast<uint8_t*>(pixels));
  for (int i = 0; i < kBlock; ++i) numbers[i] = inside[i] ? pixels[i] : fill;
  copy_block(numbers, count, to);
}

template <bool kFused>
inline void bilinear_of_tensor(const TensorWarp& warp, const TensorPositions& positions, const Picture& picture,
                               int count, uint8_t* to) {
  alignas(64) float weights[4][kBlock], values[4][kBlock], within[kBlock];
  alignas(64) uint32_t numbers[4][kBlock], inside[4][kBlock], taps[4][kBlock], made[kBlock] = {};
  const int width = picture.size.width, height = picture.size.height;
  for (int i = 0; i < kBlock; ++i) {
    const TensorWeights four(positions.x[i], positions.y[i]);
    const int column = static_cast<int>(std::floor(positions.x[i])), row = static_cast<int>(std::floor(positions.y[i]));
    for (int k = 0; k < 4; ++k) {
      const int x = column + k % 2, y = row + k / 2;
      const bool in = (x >= 0) & (y >= 0) & (x < width) & (y < height);
      weights[k][i] = four.of[k];
      inside[k][i] = in ? ~0u : 0u;
      numbers[k][i] = in ? static_cast<uint32_t>(y) * static_cast<uint32_t>(width) + static_cast<uint32_t>(x) : 0;
    }
    const float ones[4] = {inside[0][i] ? 1.0f : 0.0f, inside[1][i] ? 1.0f : 0.0f, inside[2][i] ? 1.0f : 0.0f,
                           inside[3][i] ? 1.0f : 0.0f};
    within[i] = tensor_mixed<kFused>(ones, four.of);
  }
  for (int k = 0; k < 4; ++k) {
    gather(picture, numbers[k], count, reinterpret_cast<uint8_t*>(taps[k]));
    for (int i = 0; i < kBlock; ++i) taps[k][i] &= inside[k][i];
  }
  for (int c = 0; c < 3; ++c) {
    const float fill = warp.fill[static_cast<size_t>(c)];
    for (int k = 0; k < 4; ++k) {
      for (int i = 0; i < kBlock; ++i) values[k][i] = static_cast<float>(static_cast<int>(taps[k][i] >> 8 * c & 255));
    }
    for (int i = 0; i < kBlock; ++i) {
      const float four[4] = {values[0][i], values[1][i], values[2][i], values[3][i]};
      const float by[4] = {weights[0][i], weights[1][i], weights[2][i], weights[3][i]};
      const float mixed = tensor_filled(warp, tensor_mixed<kFused>(four, by), within[i], fill);
      made[i] |= static_cast<uint32_t>(rounded_to_byte(mixed)) << 8 * c;
    }
  }
  copy_block(made, count, to);
}

template <bool kFused>
void tensor_rows(const TensorWarp& warp, const Picture& picture, uint8_t* to) {
  const Size size = picture.size;
  const std::array<float, 6> matrix = tensor_matrix(warp, size);
  const uint32_t ground = warp.filled ? pack_rgbx(rounded_to_byte(warp.fill[0]), rounded_to_byte(warp.fill[1]),
                                                  rounded_to_byte(warp.fill[2]))
                                      : 0;
  TensorPositions positions;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; x += kBlock) {
      const int count = std::min(kBlock, size.width - x);
      map_tensor_to_source<kFused>(warp, matrix, x, y, size, positions);
      if (warp.bilinear) {
        bilinear_of_tensor<kFused>(warp, positions, picture, count, to);
      } else {
        nearest_of_tensor(positions, picture, count, ground, to);
      }
      to += static_cast<size_t>(count) * kPixelBytes;
    }
  }
}

inline void run_tensor_warp(const TensorWarp& given, const uint8_t* from, Size size, uint8_t* to) {
  const TensorWarp warp = given;  // a copy: a compiler must assume that stores of bytes change it
  warp.fused ? tensor_rows<true>(warp, {from, size}, to) : tensor_rows<false>(warp, {from, size}, to);
}

}  // namespace
}  // namespace headrace
