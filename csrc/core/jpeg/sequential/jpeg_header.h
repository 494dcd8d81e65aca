// Reads a JPEG's markers without decoding: size, sampling, coding, and whether it is plain enough for the native
// decoder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/geometry.h"

namespace headrace {

struct JpegComponent {
  uint8_t id = 0, h = 1, v = 1;
};

struct JpegHeader {
  Size size;
  int components = 0;  // 1 or 3 in a plain file; 0 to 4 in others
  std::array<JpegComponent, 4> component{};
  int frame = 0;  // the marker of the frame: 0xC0 baseline, 0xC1 extended, 0xC2 progressive, ...
  bool progressive = false;
  bool arithmetic = false;
  bool jfif = false;
  int adobe_transform = -1;  // -1: no Adobe marker
  int exif_orientation = 0;  // 0: none; 1 to 8 as in EXIF (reported only: torchvision does not rotate)
  bool turned = false;       // Pillow's exif_transpose may rotate or mirror it, by EXIF or XMP
  int restart_interval = 0;  // of the first scan, in MCUs; 0: none
  int scans = 0;             // more than 1 in progressive and in some baseline files
  size_t scan_begin = 0;     // first byte of the first scan's entropy-coded data
  size_t scan_end = 0;       // the FF of the marker that ends these data
  /// nullptr: Pillow accepts the file, the native decoder may decode it. Else why it goes to Pillow; static storage.
  const char* not_plain = nullptr;
};

/// Never throws, never reads outside `data`; any bytes are allowed. Sets not_plain for everything that it cannot
/// guarantee.
JpegHeader parse_jpeg_header(std::span<const uint8_t> data);

}  // namespace headrace
