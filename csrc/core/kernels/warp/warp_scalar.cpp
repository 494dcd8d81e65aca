// Warps without vectors: the reference for the other sets.
#include <cstring>

#include "core/kernels/warp/tensor_warp.h"
#include "core/kernels/warp/warp_loops.h"

namespace headrace {

void run_warp_scalar(const WarpJob& job, const uint8_t* from, Size in, Box window, uint8_t* to) {
  const size_t row_bytes = static_cast<size_t>(in.width) * kPixelBytes;
  const auto pixel = [from, row_bytes](int x, int y) {
    uint32_t one;
    std::memcpy(&one, from + static_cast<size_t>(y) * row_bytes + static_cast<size_t>(x) * kPixelBytes, kPixelBytes);
    return one;
  };
  const size_t out_bytes = static_cast<size_t>(job.warp.out.width) * kPixelBytes;
  to += static_cast<size_t>(window.y) * out_bytes;
  for (int y = window.y; y < window.y + window.height; ++y, to += out_bytes) {
    warp_row(job, y, window.x, window.x + window.width, in.width, in.height, pixel,
             [to](int x, uint32_t one) { std::memcpy(to + static_cast<size_t>(x) * kPixelBytes, &one, kPixelBytes); });
  }
}

namespace {

template <bool kFused>
uint32_t tensor_pixel(const TensorWarp& warp, const uint8_t* from, Size size, float x, float y) {
  std::array<float, 4> made = {0.0f, 0.0f, 0.0f, 0.0f};
  if (warp.bilinear) {
    made = tensor_sampled<kFused>(from, size, x, y);
    for (size_t c = 0; c < 3; ++c) made[c] = tensor_filled(warp, made[c], made[3], warp.fill[c]);
  } else {
    const float column = std::nearbyint(x), row = std::nearbyint(y);
    if (column >= 0.0f && row >= 0.0f && column < static_cast<float>(size.width) &&
        row < static_cast<float>(size.height)) {
      const size_t number = static_cast<size_t>(row) * static_cast<size_t>(size.width) + static_cast<size_t>(column);
      for (size_t c = 0; c < 3; ++c) made[c] = from[number * kPixelBytes + c];
    } else if (warp.filled) {
      for (size_t c = 0; c < 3; ++c) made[c] = warp.fill[c];
    }
  }
  return pack_rgbx(rounded_to_byte(made[0]), rounded_to_byte(made[1]), rounded_to_byte(made[2]));
}

template <bool kFused>
void warp_tensor_pixels(const TensorWarp& warp, const uint8_t* from, Size size, uint8_t* to) {
  const std::array<float, 6> m = tensor_matrix(warp, size);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x, to += kPixelBytes) {
      const float u = from_centre(x, size.width), v = from_centre(y, size.height);
      const auto coordinate = [&](const float* half) {
        return warp.fused_positions ? tensor_coordinate<true>(half, u, v) : tensor_coordinate<false>(half, u, v);
      };
      const uint32_t pixel =
          tensor_pixel<kFused>(warp, from, size, tensor_position<kFused>(coordinate(&m[0]), size.width),
                               tensor_position<kFused>(coordinate(&m[3]), size.height));
      std::memcpy(to, &pixel, kPixelBytes);
    }
  }
}

}  // namespace

void run_tensor_warp_scalar(const TensorWarp& warp, const uint8_t* from, Size size, uint8_t* to) {
  warp.fused ? warp_tensor_pixels<true>(warp, from, size, to) : warp_tensor_pixels<false>(warp, from, size, to);
}

}  // namespace headrace
