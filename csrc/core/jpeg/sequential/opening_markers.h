// The markers of a JPEG before its first scan, as Pillow's JpegImageFile reads them when a file is opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headrace {

/// What Pillow does with a segment: it looks into most kinds, and keeps the bytes of an application segment as they
/// are.
enum class OpeningKind { kJfif, kAdobe, kProfile, kApplication, kComment, kTables, kFrame };

/// One segment: what follows the two bytes of its length.
struct OpeningSegment {
  int marker = 0;  // the second byte: 0xE0 is APP0
  OpeningKind kind = OpeningKind::kApplication;
  std::span<const uint8_t> body;
};

/// A frame of 8 bits and 1 or 3 components, and what surrounds it.
struct OpeningMarkers {
  std::vector<OpeningSegment> segments;  // APPn, COM, DQT and SOFn, in the order of the file
  size_t end = 0;                        // after the header of the first scan
};

inline constexpr size_t kOpeningTable = 65;    // bytes of a quantisation table with its number
inline constexpr size_t kOpeningProfile = 14;  // bytes of a profile's segment before the profile

/// Reads the beginning of a file. Nothing where Pillow might raise an error, warn, skip bytes, look outside of `head`,
/// or read more of a segment than its name, a JFIF resolution, an Adobe transform, or a colour profile in one piece.
std::optional<OpeningMarkers> read_opening_markers(std::span<const uint8_t> head);

}  // namespace headrace
