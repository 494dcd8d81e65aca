// Reads what application segments say that matters here: the orientation, and what would make Pillow refuse the file.
#include "jpeg_metadata.h"

#include <cstring>
#include <string_view>

namespace headrace {
namespace {

using Bytes = std::span<const uint8_t>;

bool starts_with(Bytes body, std::string_view prefix) {
  return body.size() >= prefix.size() && std::memcmp(body.data(), prefix.data(), prefix.size()) == 0;
}

uint32_t read_uint(Bytes bytes, size_t at, int size, bool big_endian) {
  uint32_t value = 0;
  for (int i = 0; i < size; ++i) {
    const int shift = 8 * (big_endian ? size - 1 - i : i);
    value |= static_cast<uint32_t>(bytes[at + static_cast<size_t>(i)]) << shift;
  }
  return value;
}

/// Pillow reads the resolution out of IFD 0 at opening, and lets an IndexError through when that is an empty string:
/// so a resolution that is not one RATIONAL, or a unit that is not one SHORT, is left to Pillow.
const char* read_exif(Bytes tiff, int* orientation) {
  constexpr const char* kOdd = "an EXIF segment that only Pillow can judge";
  constexpr uint32_t kOrientation = 0x112, kResolution = 0x11A, kResolutionY = 0x11B, kUnit = 0x128;
  constexpr uint32_t kShort = 3, kRational = 5;
  const bool big_endian = starts_with(tiff, std::string_view("MM\0*", 4));
  if (!big_endian && !starts_with(tiff, std::string_view("II*\0", 4))) return kOdd;
  if (tiff.size() < 8) return kOdd;
  const size_t directory = read_uint(tiff, 4, 4, big_endian);
  if (directory > tiff.size() || tiff.size() - directory < 2) return kOdd;
  const size_t count = read_uint(tiff, directory, 2, big_endian);
  for (size_t i = 0; i < count; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) return kOdd;
    const uint32_t tag = read_uint(tiff, entry, 2, big_endian);
    const uint32_t type = read_uint(tiff, entry + 2, 2, big_endian);
    const uint32_t items = read_uint(tiff, entry + 4, 4, big_endian);
    if ((tag == kResolution || tag == kResolutionY) && (type != kRational || items != 1)) return kOdd;
    if (tag == kUnit && (type != kShort || items != 1)) return kOdd;
    if (tag == kOrientation && type == kShort && items == 1) {
      const uint32_t value = read_uint(tiff, entry + 8, 2, big_endian);
      if (value >= 1 && value <= 8) *orientation = static_cast<int>(value);
    }
  }
  return nullptr;
}

/// The walk of Pillow's own parser: running out of data is fine everywhere but at a resource's name, where the
/// IndexError makes it refuse the file.
bool photoshop_readable(Bytes body) {
  constexpr uint64_t kHeader = 14;  // "Photoshop 3.0\0"
  uint64_t at = kHeader;
  while (at + 4 <= body.size() && std::memcmp(body.data() + at, "8BIM", 4) == 0) {
    at += 4;
    if (at + 2 > body.size()) return true;
    at += 2;
    if (at >= body.size()) return false;
    at += 1u + body[at];
    at += at & 1;
    if (at + 4 > body.size()) return true;
    const uint64_t size = read_uint(body, at, 4, true);
    at += 4 + size;
    at += at & 1;
  }
  return true;
}

}  // namespace

void JpegMetadata::read_app(int marker, Bytes body) {
  const auto doubtful = [this](const char* why) {
    if (doubt == nullptr) doubt = why;
  };
  if (marker == 0xE0 && starts_with(body, "JFIF")) {
    if (body.size() < 14) doubtful("a JFIF segment cut short");
    if (body.size() >= 14 && body[4] == 0) {
      jfif = true;
      if (body[5] != 1) doubtful("a JFIF version that libjpeg warns of");
    }
  } else if (marker == 0xE1 && starts_with(body, std::string_view("Exif\0\0", 6))) {
    if (exif_seen) doubtful("two EXIF segments");  // Pillow joins them
    exif_seen = true;
    if (const char* why = read_exif(body.subspan(6), &exif_orientation)) doubtful(why);
  } else if (marker == 0xE2 && starts_with(body, std::string_view("ICC_PROFILE\0", 12))) {
    if (body.size() < 14) doubtful("an ICC segment cut short");
  } else if (marker == 0xED && starts_with(body, std::string_view("Photoshop 3.0\0", 14))) {
    if (!photoshop_readable(body)) doubtful("a Photoshop segment cut short");
  } else if (marker == 0xEE && starts_with(body, "Adobe")) {
    if (body.size() < 12) {
      doubtful("an Adobe segment cut short");
    } else {
      adobe_transform = body[11];
    }
  }
}

}  // namespace headrace
