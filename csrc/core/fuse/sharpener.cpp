// PIL.ImageEnhance.Sharpness: keeps the old bytes of the row above and of the current one.
#include "core/fuse/sharpener.h"

#include <cstring>
#include <utility>

namespace headrace {

void Sharpener::run(uint8_t* pixels, Size size, float factor, const EffectLoops& loops) {
  if (size.width < 3 || size.height < 3) return;
  const size_t count = static_cast<size_t>(size.width), bytes = count * kPixelBytes;
  rows_.resize(2 * bytes);
  uint8_t *above = rows_.data(), *current = above + bytes;
  std::memcpy(above, pixels, bytes);
  for (int y = 1; y + 1 < size.height; ++y) {
    uint8_t* row = pixels + static_cast<size_t>(y) * bytes;
    std::memcpy(current, row, bytes);
    const uint8_t* const rows[3] = {above, current, row + bytes};
    loops.sharpen(rows, count, factor, row);
    std::swap(above, current);
  }
}

}  // namespace headrace
