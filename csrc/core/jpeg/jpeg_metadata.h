// Reads what application segments say that matters here: the orientation, and what would make Pillow refuse the file or
// warn of it.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

/// What the APPn segments of one file have said so far. Pixels never depend on it: Pillow parses these segments while
/// it opens a file, and an exception or a warning there is one that libjpeg knows nothing about.
struct JpegMetadata {
  bool jfif = false;         // as libjpeg sees it: this decides the colour space
  int adobe_transform = -1;  // as libjpeg sees it; -1: no Adobe marker
  int exif_orientation = 0;  // of IFD 0; 0: none
  bool exif_seen = false, pictures_seen = false;
  bool resolution = false;      // a JFIF segment has one: then Pillow does not look for it in the EXIF segment
  bool exif_sound = true;       // Pillow reads the whole of IFD 0 without a warning
  const char* doubt = nullptr;  // a static sentence: why Pillow may refuse the file, or libjpeg warn

  /// The same when all segments up to the first scan were read; nullptr: neither does.
  const char* verdict() const;
  /// `marker` is 0xE0 to 0xEF, `body` the segment without its length.
  void read_app(int marker, std::span<const uint8_t> body);
};

}  // namespace headrace
