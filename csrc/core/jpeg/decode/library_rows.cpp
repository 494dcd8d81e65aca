// The rows of a box as libjpeg-turbo makes them.
#include "core/jpeg/decode/library_rows.h"

#include <algorithm>

namespace headrace {
namespace {

// libjpeg-turbo's colour conversion uses non-temporal stores for rows that are aligned to its vectors, but the next
// stage reads the rows from the cache. Rows that are 8 bytes off this alignment stay in the cache.
constexpr int kRowOffset = 8;

// Narrower crops are decoded wider: below two samples of a component libjpeg-turbo switches to an upsampling that a
// full decode does not use. The coarsest sampling has one sample per 4 pixels and needs 8; this is twice that.
constexpr int kMinCropWidth = 16;

}  // namespace

void push_library_rows(const JpegImage& image, JpegSession& session, std::span<const uint8_t> data,
                       const JpegHeader& header, Box box, RowBuffer& rows, RowSink& sink) {
  // One pixel of margin on both sides: fancy upsampling reads the neighbouring sample, which a tight cut would omit.
  int left = std::max(box.x - 1, 0), right = std::min(box.x + box.width + 1, header.size.width);
  right = std::min(std::max(right, left + kMinCropWidth), header.size.width);
  left = std::max(std::min(left, right - kMinCropWidth), 0);
  JDIMENSION from = static_cast<JDIMENSION>(left), width = static_cast<JDIMENSION>(right - left);
  image.require(session.start(data, header, &from, &width));

  rows.reset(JpegSession::kBatchRows, static_cast<int>(width) * kPixelBytes + kRowOffset);
  uint8_t* const first = rows.row(0) + kRowOffset;
  if (box.y > 0) image.require(session.skip(static_cast<JDIMENSION>(box.y)));
  for (int done = 0; done < box.height;) {
    const int count = std::min(JpegSession::kBatchRows, box.height - done);
    image.require(session.read(first, rows.stride(), count));
    sink.push(first + static_cast<size_t>(box.x - static_cast<int>(from)) * kPixelBytes, rows.stride(), count);
    done += count;
  }
}

}  // namespace headrace
