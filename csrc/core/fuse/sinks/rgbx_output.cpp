// An output of unmapped bytes, four per pixel.
#include "core/fuse/sinks/rgbx_output.h"

#include <array>

namespace headrace {

std::span<const uint8_t> byte_entries() {
  alignas(64) static const auto kEntries = [] {
    std::array<uint8_t, 3 * 256> entries{};
    for (size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<uint8_t>(i);
    return entries;
  }();
  return kEntries;
}

Output rgbx_output(uint8_t* pixels, Size size) {
  Output output;
  output.base = pixels;
  output.row_stride = ptrdiff_t{size.width} * kPixelBytes;
  output.rgbx = true;
  return output;
}

}  // namespace headrace
