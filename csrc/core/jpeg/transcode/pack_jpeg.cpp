// Rewrites a JPEG without loss, so that a crop of it decodes faster: the same coefficients, and a restart marker per
// row of MCUs.
#include "core/jpeg/transcode/pack_jpeg.h"

#include "core/base/error.h"
#include "core/jpeg/sequential/jpeg_header.h"
#include "core/jpeg/transcode/coefficients.h"
#include "core/jpeg/transcode/segments.h"

namespace headrace {
namespace {

constexpr int kBaseline = 0xC0;
constexpr size_t kMarkerBytes = 2;
constexpr size_t kMostTables = 4096;  // bytes of headers and tables, which even the smallest file needs

void require(bool fine, const Coefficients& coefficients) {
  if (!fine) throw NeedsPillow(Stage::kDecode, coefficients.message());
}

JpegHeader plain(std::span<const uint8_t> data) {
  const JpegHeader header = parse_jpeg_header(data);
  if (header.not_plain != nullptr) throw NeedsPillow(Stage::kHeader, header.not_plain);
  return header;
}

/// Reads `packed` like any other file, and compares it with its source.
void verify(std::span<const uint8_t> packed, const JpegHeader& before, Coefficients& source) {
  const JpegHeader after = plain(packed);
  if (after.frame != kBaseline) throw NeedsPillow(Stage::kHeader, "quantisation values above 255");
  if (after.jfif != before.jfif || after.adobe_transform != before.adobe_transform ||
      after.exif_orientation != before.exif_orientation || after.turned != before.turned)
    throw NeedsPillow(Stage::kHeader, "segments that do not survive a rewrite");
  Coefficients written;
  require(written.read(packed), written);
  bool equal = false;
  require(source.compare(written, &equal), source);
  if (!equal) throw NeedsPillow(Stage::kDecode, "coefficients that do not survive a rewrite");
}

}  // namespace

std::vector<uint8_t> pack_jpeg(std::span<const uint8_t> data, bool keep_metadata) {
  const JpegHeader header = plain(data);
  if (int64_t{header.size.width} * header.size.height > kMostPackedPixels)
    throw NeedsPillow(Stage::kHeader, "more than 134,217,728 pixels");
  const std::vector<uint8_t> segments = kept_segments(data, keep_metadata);

  Coefficients source;
  require(source.read(data), source);
  std::vector<uint8_t> coded(2 * data.size() + kMostTables);
  size_t size = 0;
  require(source.write(coded, &size), source);

  std::vector<uint8_t> packed;
  const size_t trailing = keep_metadata ? source.bytes_left() : 0;
  packed.reserve(size + segments.size() + trailing);
  const auto append = [&](std::span<const uint8_t> bytes) { packed.insert(packed.end(), bytes.begin(), bytes.end()); };
  append(std::span(coded).first(kMarkerBytes));  // SOI
  append(segments);
  append(std::span(coded).subspan(kMarkerBytes, size - kMarkerBytes));
  append(data.last(trailing));
  verify(packed, header, source);
  return packed;
}

}  // namespace headrace
