// PIL.ImageFilter.GaussianBlur: three box blurs of the rows, then three of the columns.
#include "core/kernels/effects/box_blur.h"

#include <algorithm>
#include <cstring>

namespace headrace {

void BoxBlur::run(uint8_t* pixels, Size size, int edge, uint32_t weight, uint32_t rest, const EffectLoops& loops) {
  constexpr int kPasses = 3;
  const size_t row = size_t(size.width) * kPixelBytes, image = row * size_t(size.height);
  const int reach = edge + 1, count = 2 * reach + 1;
  other_.resize(std::max(image, row + 2 * size_t(reach) * kPixelBytes));
  rows_.resize(size_t(count));
  const uint8_t** rows = rows_.data();
  for (int y = 0; y < size.height; ++y) {
    uint8_t* const to = pixels + size_t(y) * row;
    uint8_t* const from = other_.data() + size_t(reach) * kPixelBytes;
    for (int k = 0; k < count; ++k) rows[k] = other_.data() + size_t(k) * kPixelBytes;
    for (int pass = 0; pass < kPasses; ++pass) {
      std::memcpy(from, to, row);
      for (int k = 1; k <= reach; ++k) {
        std::memcpy(from - k * ptrdiff_t{kPixelBytes}, to, kPixelBytes);
        std::memcpy(from + row + size_t(k - 1) * kPixelBytes, to + row - kPixelBytes, kPixelBytes);
      }
      loops.box(rows, count, weight, rest, row, to);
    }
  }
  for (int pass = 0; pass < kPasses; ++pass) {
    std::memcpy(other_.data(), pixels, image);
    for (int y = 0; y < size.height; ++y) {
      for (int k = 0; k < count; ++k) {
        rows[k] = other_.data() + size_t(std::clamp(y + k - reach, 0, size.height - 1)) * row;
      }
      loops.box(rows, count, weight, rest, row, pixels + size_t(y) * row);
    }
  }
}

}  // namespace headrace
