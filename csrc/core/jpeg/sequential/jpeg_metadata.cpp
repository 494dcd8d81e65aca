// Reads application segments: the orientation, and contents that make Pillow or libjpeg refuse the file or warn.
#include "core/jpeg/sequential/jpeg_metadata.h"

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

/// A TIFF structure, as in EXIF and MPF segments.
struct Tiff {
  Bytes bytes;
  bool big_endian = false;
  uint32_t u16(size_t at) const { return read_uint(bytes, at, 2, big_endian); }
  uint32_t u32(size_t at) const { return read_uint(bytes, at, 4, big_endian); }
};

struct TiffEntry {
  uint32_t tag = 0, type = 0, items = 0;
  uint64_t length = 0;  // of its value, in bytes; 0: of unknown type, or empty
  size_t value_at = 0;  // in the entry's last four bytes, or where they point
  bool inside = false;  // the whole value is inside
};

constexpr uint32_t kShort = 3, kLong = 4, kRational = 5, kUndefined = 7;

/// Calls `visit` for each entry of the first directory until it returns false. False: stopped, or incomplete.
template <typename Visit>
bool visit_directory(const Tiff& tiff, Visit visit) {
  constexpr uint8_t kBytesEach[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};  // by type, as in Pillow
  const size_t size = tiff.bytes.size();
  if (size < 8) return false;
  const size_t directory = tiff.u32(4);
  if (directory > size || size - directory < 2) return false;
  const size_t count = tiff.u16(directory);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = directory + 2 + 12 * i;
    if (at + 12 > size) return false;
    TiffEntry entry{tiff.u16(at), tiff.u16(at + 2), tiff.u32(at + 4), 0, at + 8, false};
    if (entry.type < sizeof kBytesEach) entry.length = uint64_t{kBytesEach[entry.type]} * entry.items;
    if (entry.length > 4) entry.value_at = tiff.u32(at + 8);
    entry.inside = entry.value_at <= size && entry.length <= size - entry.value_at;
    if (!visit(entry)) return false;
  }
  return true;
}

/// Whether a complete directory is followed by the offset of the next one, which Pillow also reads.
bool next_directory_named(const Tiff& tiff) {
  const size_t directory = tiff.u32(4);
  return directory + 2 + size_t{12} * tiff.u16(directory) + 4 <= tiff.bytes.size();
}

/// Whether Pillow reads values without a warning: each is inside, and their sum is at most the structure's size.
class SoundValues {
 public:
  explicit SoundValues(Bytes tiff) : left_(tiff.size()) {}
  bool add(const TiffEntry& entry) {
    if (entry.length <= 4) return true;
    if (!entry.inside || entry.length > left_) return false;
    left_ -= entry.length;
    return true;
  }

 private:
  uint64_t left_;
};

bool open_tiff(Bytes bytes, Tiff* tiff) {
  *tiff = {bytes, starts_with(bytes, std::string_view("MM\0*", 4))};
  return tiff->big_endian || starts_with(bytes, std::string_view("II*\0", 4));
}

/// Pillow reads the resolution from IFD 0 when it opens a file, and does not catch the IndexError of an empty string.
/// So this returns false for a resolution that is not one RATIONAL, or a unit that is not one SHORT. *sound: whether
/// Pillow reads IFD 0 without a warning.
bool read_exif(Bytes bytes, int* orientation, bool* turns, bool* sound) {
  constexpr uint32_t kOrientation = 0x112, kResolution = 0x11A, kResolutionY = 0x11B, kUnit = 0x128;
  Tiff tiff;
  SoundValues values(bytes);
  *sound = true;
  const bool readable = open_tiff(bytes, &tiff) && visit_directory(tiff, [&](const TiffEntry& entry) {
                          *sound = values.add(entry) && *sound;
                          if (entry.tag == kResolution || entry.tag == kResolutionY)
                            return entry.type == kRational && entry.items == 1;
                          if (entry.tag == kUnit) return entry.type == kShort && entry.items == 1;
                          if (entry.tag == kOrientation) {
                            const bool plain = entry.type == kShort && entry.items == 1;
                            const uint32_t value = plain ? tiff.u16(entry.value_at) : 0;
                            if (value >= 1 && value <= 8) *orientation = static_cast<int>(value);
                            *turns = *turns || value != 1;
                          }
                          return true;
                        });
  *sound = readable && *sound && next_directory_named(tiff);
  return readable;
}

/// Pillow opens a file of several pictures (MPF) as the first one, but only if it can read the index, by rules that
/// differ between its versions. So every entry must be complete, and the list of pictures must follow the standard.
bool pictures_readable(Bytes bytes) {
  constexpr uint32_t kNumber = 0xB001, kPictures = 0xB002, kPictureBytes = 16;
  constexpr uint32_t kFormat = 7u << 24;  // of a picture; 0 is JPEG
  Tiff tiff;
  uint32_t number = 0, listed = 0;
  SoundValues values(bytes);
  const bool whole = open_tiff(bytes, &tiff) && visit_directory(tiff, [&](const TiffEntry& entry) {
                       if (entry.length == 0 || !entry.inside || !values.add(entry)) return false;
                       if (entry.type != kUndefined && entry.items != 1) return false;  // too many: Pillow may warn
                       if (entry.tag == kNumber) {
                         if (entry.type != kLong || entry.items != 1 || number != 0) return false;
                         number = tiff.u32(entry.value_at);
                       } else if (entry.tag == kPictures) {
                         if (entry.type != kUndefined || listed != 0) return false;
                         listed = entry.items;
                         for (size_t at = 0; at + kPictureBytes <= listed; at += kPictureBytes)
                           if ((tiff.u32(entry.value_at + at) & kFormat) != 0) return false;
                       }
                       return true;
                     });
  return whole && next_directory_named(tiff) && number > 0 && listed == uint64_t{number} * kPictureBytes;
}

/// Follows Pillow's parser, which accepts data that end anywhere but at a resource's name: the IndexError there makes
/// it refuse the file.
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

/// Whether an XMP packet may have an orientation other than 1. Pillow searches its bytes for
/// `tiff:Orientation(="|>)([0-9])`.
bool xmp_may_turn(Bytes packet) {
  constexpr std::string_view kName = "tiff:Orientation";
  const std::string_view text(reinterpret_cast<const char*>(packet.data()), packet.size());
  for (size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    const std::string_view value = text.substr(at + kName.size(), 3);
    if (!value.starts_with("=\"1") && !value.starts_with(">1")) return true;
  }
  return false;
}

}  // namespace

bool JpegMetadata::turned() const { return exif_turns || (exif_seen && !exif_sound) || xmp_turns; }

const char* JpegMetadata::verdict() const {
  if (doubt == nullptr && exif_seen && !exif_sound && !resolution) return "an EXIF segment that Pillow warns about";
  return doubt;
}

void JpegMetadata::read_app(int marker, Bytes body) {
  const auto doubtful = [this](const char* why) {
    if (doubt == nullptr) doubt = why;
  };
  if (marker == 0xE0 && starts_with(body, "JFIF")) {
    if (body.size() < 14) doubtful("a JFIF segment cut short");
    if (body.size() >= 14 && body[4] == 0) {
      jfif = true;
      if (body[5] != 1) doubtful("a JFIF version that libjpeg warns about");
    }
    if (body.size() >= 14 && (body[7] == 1 || body[7] == 2)) resolution = true;
  } else if (marker == 0xE1 && starts_with(body, std::string_view("Exif\0\0", 6))) {
    if (exif_seen) doubtful("two EXIF segments");  // Pillow joins them
    exif_seen = true;
    if (!read_exif(body.subspan(6), &exif_orientation, &exif_turns, &exif_sound))
      doubtful("an EXIF segment that only Pillow can judge");
  } else if (marker == 0xE1 && starts_with(body, std::string_view("http://ns.adobe.com/xap/1.0/\0", 29))) {
    xmp_turns = xmp_may_turn(body.subspan(29));
  } else if (marker == 0xE2 && starts_with(body, std::string_view("ICC_PROFILE\0", 12))) {
    if (body.size() < 14) doubtful("an ICC segment cut short");
  } else if (marker == 0xE2 && starts_with(body, std::string_view("MPF\0", 4))) {
    if (pictures_seen || !pictures_readable(body.subspan(4))) doubtful("an MPF segment that only Pillow can judge");
    pictures_seen = true;
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
