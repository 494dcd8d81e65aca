// Rewrites a JPEG without loss, so that a crop of it decodes faster: the same coefficients, and a restart marker per
// row of MCUs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

/// A baseline JPEG with the coefficients, quantisation tables and sampling of `data`: Huffman codes that are optimal
/// for it, one scan, a restart marker before each row of MCUs except the first. All segments before the first scan that
/// are not part of the coding are kept, in their order, and so are the bytes after the EOI. Unless `keep_metadata`,
/// only the segments are kept that a reader may use to show the pixels (JFIF, EXIF, XMP, ICC profiles, Adobe), and no
/// byte after the EOI. The result is read back and compared before it is returned.
///
/// Throws NeedsPillow with the reason where that is not possible: the file is not a clean, plain JPEG (see
/// parse_jpeg_header), libjpeg-turbo warns about it, it has an MPF index of further pictures, quantisation values above
/// 255 or more than kMostPackedPixels, its scans cannot be joined, or the result would have more than twice its bytes.
std::vector<uint8_t> pack_jpeg(std::span<const uint8_t> data, bool keep_metadata);

/// Coefficients take up to 6 bytes per pixel, twice.
inline constexpr int64_t kMostPackedPixels = int64_t{1} << 27;

}  // namespace headrace
