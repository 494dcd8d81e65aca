// Turns JPEG bytes into the RGBX rows of a box, through libjpeg-turbo; one decoder a worker.
#include "core/jpeg/jpeg_decoder.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/row_buffer.h"
#include "core/jpeg/jpeg_session.h"

namespace headrace {
namespace {

// Libjpeg-turbo's colour conversion writes rows that are aligned to its vectors with stores that go around the cache,
// and the next stage wants the rows from the cache. 8 bytes off alignment keeps them there.
constexpr int kRowOffset = 8;

// A crop narrower than this is decoded wider: below two samples of a component libjpeg-turbo changes to an upsampling
// that a full decode does not use. The coarsest sampling has one sample to 4 pixels; twice what that asks for.
constexpr int kMinCropWidth = 16;

}  // namespace

struct JpegDecoder::State {
  JpegSession session;
  RowBuffer rows;  // so many are handed on at once: enough to make the hand-over cheap, few enough to stay in L1
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {
  if (!state_->session.create()) throw Error(Stage::kDecode, state_->session.message);
}

JpegDecoder::~JpegDecoder() = default;

void JpegDecoder::decode(std::span<const uint8_t> data, const JpegHeader& header, Box box, RowSink& sink) {
  JpegSession& session = state_->session;
  RowBuffer& rows = state_->rows;
  const JpegImage image(session);

  // One pixel of margin on both sides: fancy upsampling looks at the neighbour, and at the cut there is none.
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
