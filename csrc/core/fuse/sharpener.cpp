// Sharpness: keeps the old bytes of the row above and of the current one.
#include "core/fuse/sharpener.h"

#include <cstring>
#include <utility>

#include "core/kernels/effects/tensor_math.h"

namespace headrace {

template <class Sharpen>
void Sharpener::each_row(uint8_t* pixels, Size size, Sharpen sharpen) {
  const size_t bytes = static_cast<size_t>(size.width) * kPixelBytes;
  rows_.resize(2 * bytes);
  uint8_t *above = rows_.data(), *current = above + bytes;
  std::memcpy(above, pixels, bytes);
  for (int y = 1; y + 1 < size.height; ++y) {
    uint8_t* row = pixels + static_cast<size_t>(y) * bytes;
    std::memcpy(current, row, bytes);
    const uint8_t* const rows[3] = {above, current, row + bytes};
    sharpen(rows, row);
    std::swap(above, current);
  }
}

void Sharpener::run(uint8_t* pixels, Size size, float factor, const EffectLoops& loops) {
  if (size.width < 3 || size.height < 3) return;
  each_row(pixels, size, [&](const uint8_t* const* rows, uint8_t* out) {
    loops.sharpen(rows, static_cast<size_t>(size.width), factor, out);
  });
}

void Sharpener::run(uint8_t* pixels, Size size, const Effect& effect, const EffectLoops& loops) {
  if (size.width < 3 || size.height < 3) return;
  each_row(pixels, size, [&](const uint8_t* const* rows, uint8_t* out) {
    loops.tensor_sharpen(rows, static_cast<size_t>(size.width), effect.factor, effect.rest, effect.amount, out);
  });
  if ((effect.amount & kFirstVersion) == 0) return;
  const size_t bytes = static_cast<size_t>(size.width) * kPixelBytes;
  for (uint8_t* row : {pixels, pixels + static_cast<size_t>(size.height - 1) * bytes}) {
    for (size_t i = 0; i < bytes; ++i) {
      row[i] = static_cast<uint8_t>(tensor_sharpened<true, false>(row[i], row[i], effect.factor, effect.rest));
    }
  }
}

}  // namespace headrace
