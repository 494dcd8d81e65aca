// Reads application segments: the orientation, and contents that make Pillow or libjpeg refuse the file or warn.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

/// What the APPn segments of one file contain, as far as they are read. Only JFIF and Adobe segments affect pixels.
/// Others matter because Pillow parses them when it opens a file, and may raise or warn where libjpeg does not.
struct JpegMetadata {
  bool jfif = false;         // as libjpeg reads it; affects the colour space
  int adobe_transform = -1;  // the same; -1: no Adobe marker
  int exif_orientation = 0;  // of IFD 0; 0: none
  bool exif_turns = false;   // IFD 0 has an orientation that may differ from 1
  bool xmp_turns = false;    // the last XMP segment has one; Pillow reads it where IFD 0 has none
  bool exif_seen = false, pictures_seen = false;
  bool resolution = false;      // a JFIF segment has one, so Pillow does not read it from the EXIF segment
  bool exif_sound = true;       // Pillow reads all of IFD 0 without a warning
  const char* doubt = nullptr;  // why Pillow may refuse the file, or libjpeg warn; static storage

  /// `doubt`, or that Pillow warns about EXIF; nullptr: neither. Call once all segments up to the first scan are read.
  const char* verdict() const;
  /// Whether Pillow may find an orientation other than 1. Call once all segments up to the first scan are read.
  bool turned() const;
  /// Reads one segment. `marker`: 0xE0 to 0xEF; `body`: the segment without its length.
  void read_app(int marker, std::span<const uint8_t> body);
};

}  // namespace headrace
