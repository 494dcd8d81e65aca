// Decodes a box of a JPEG to RGBX rows with libjpeg-turbo. Each worker has one decoder.
#include "core/jpeg/jpeg_decoder.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/row_buffer.h"
#include "core/jpeg/jpeg_session.h"

namespace headrace {
namespace {

// libjpeg-turbo's colour conversion uses non-temporal stores for rows that are aligned to its vectors, but the next
// stage reads the rows from the cache. Rows that are 8 bytes off this alignment stay in the cache.
constexpr int kRowOffset = 8;

// Narrower crops are decoded wider: below two samples of a component libjpeg-turbo switches to an upsampling that a
// full decode does not use. The coarsest sampling has one sample per 4 pixels and needs 8; this is twice that.
constexpr int kMinCropWidth = 16;

}  // namespace

struct JpegDecoder::State {
  JpegSession session;
  RowBuffer rows;  // the rows of one push: enough to make a push cheap, few enough to stay in L1
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {
  if (!state_->session.create()) throw Error(Stage::kDecode, state_->session.message);
}

JpegDecoder::~JpegDecoder() = default;

void JpegDecoder::decode(std::span<const uint8_t> data, const JpegHeader& header, Box box, RowSink& sink) {
  JpegSession& session = state_->session;
  RowBuffer& rows = state_->rows;
  const JpegImage image(session);

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
