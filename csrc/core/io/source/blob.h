// Where the bytes of each sample of a dataset are: one compact table instead of a million Python objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/geometry.h"

namespace headrace {

/// Decoded pixels in memory. Byte c of pixel (x, y) is at data + y * row_stride + x * pixel_stride +
/// c * channel_stride; strides may be negative.
struct RawImage {
  const uint8_t* data = nullptr;
  Size size;
  int channels = 3;  // 1: gray; 3: R, G, B; 4: R, G, B, X, adjacent bytes, all readable
  ptrdiff_t row_stride = 0, pixel_stride = 0, channel_stride = 0;
};

/// RGBX rows without gaps.
inline RawImage rgbx_image(const uint8_t* pixels, Size size) {
  return {pixels, size, kPixelBytes, ptrdiff_t{size.width} * kPixelBytes, kPixelBytes, 1};
}

/// RGB rows without gaps.
inline RawImage rgb_image(const uint8_t* pixels, Size size) {
  return {pixels, size, 3, ptrdiff_t{size.width} * 3, 3, 1};
}

/// Rows of gray levels without gaps.
inline RawImage gray_image(const uint8_t* pixels, Size size) { return {pixels, size, 1, ptrdiff_t{size.width}, 1, 0}; }

class ByteRanges;
class Columns;

/// A sample's bytes: encoded in a file (`path`), in memory (`data`) or in a part of something larger (`ranges`); or
/// pixels (`raw`); or a row of `columns`.
struct Blob {
  const char* path = nullptr;        // zero-terminated; nullptr: memory
  const uint8_t* data = nullptr;     // memory
  uint64_t size = 0;                 // of memory
  RawImage raw;                      // raw.data not null: nothing to decode
  const Columns* columns = nullptr;  // not null: `row` of each of several arrays
  int64_t row = 0;
  const ByteRanges* ranges = nullptr;  // not null: its range `row`
};

/// Immutable, so any thread may read it. Rows are numbered from 0.
class BlobTable {
 public:
  virtual ~BlobTable() = default;
  virtual int64_t size() const = 0;
  /// The blob of a row, which must be in [0, size()): not checked. Its pointers are valid as long as the table is.
  virtual Blob at(int64_t row) const = 0;

  /// `paths`: all paths, each zero-terminated, one after another; path i begins at offsets[i].
  static std::shared_ptr<const BlobTable> of_files(std::string paths, std::vector<uint64_t> offsets);
  /// Spans of memory, which must outlive the table.
  static std::shared_ptr<const BlobTable> of_memory(std::vector<Blob> spans);
  /// The same without paths and pixels, in 16 bytes per row.
  static std::shared_ptr<const BlobTable> of_spans(std::vector<std::span<const uint8_t>> spans);
  /// `count` images of one size, the first at `first`, `stride` bytes apart; their memory must outlive the table.
  static std::shared_ptr<const BlobTable> of_pixels(const RawImage& first, ptrdiff_t stride, int64_t count);
  /// The rows of all `parts`, one table after another.
  static std::shared_ptr<const BlobTable> of_parts(std::vector<std::shared_ptr<const BlobTable>> parts);
  /// Some rows of `table`. Throws std::out_of_range for a row that it lacks.
  static std::shared_ptr<const BlobTable> of_rows(std::shared_ptr<const BlobTable> table, std::vector<int64_t> rows);
};

}  // namespace headrace
