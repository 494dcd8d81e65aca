// The chunks of a PNG: whether Pillow would open and decode it without an error or a warning, and where its data are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/geometry.h"

namespace headrace {

/// Colour types, as the file's IHDR numbers them.
enum class PngColour : uint8_t { kGray = 0, kRgb = 2, kPalette = 3, kGrayAlpha = 4, kRgba = 6 };

/// What the chunks say. Spans are parts of the file.
struct PngHeader {
  Size size;
  int depth = 0;  // bits a sample: 1, 2, 4, 8 or 16
  PngColour colour = PngColour::kGray;
  std::span<const uint8_t> palette;            // R, G, B of each entry; empty: none
  bool transparency = false;                   // has a tRNS chunk
  bool described = false;                      // has text or EXIF, which may say how the image is turned
  std::vector<std::span<const uint8_t>> data;  // of the IDAT chunks
  bool quiet = true;                           // libpng is known to read it without a message
  size_t data_end = 0;                         // where the last of them ends in the file
  const char* not_plain = nullptr;             // why Pillow decodes the file; null: it need not

  int channels() const;
  int pixel_bits() const { return channels() * depth; }
  /// Bytes from a byte of a pixel to the same one of the next, as filters count them.
  int filter_bytes() const { return pixel_bits() < 8 ? 1 : pixel_bits() / 8; }
  size_t row_bytes() const { return (static_cast<size_t>(size.width) * static_cast<size_t>(pixel_bits()) + 7) / 8; }
};

/// Whether bytes begin as a PNG does.
bool is_png(std::span<const uint8_t> bytes);

/// Reads the chunks of a PNG, any bytes allowed. A file is plain if all its chunks are sound and of the kinds that
/// Pillow reads without an effect on pixels; and if it is neither interlaced nor animated.
PngHeader parse_png_header(std::span<const uint8_t> bytes);

}  // namespace headrace
