// Reads raw samples one row of iMCUs at a time, directly to their destination.
#include "core/jpeg/planes/plane_decoder.h"

#include "core/base/error.h"
#include "core/jpeg/sequential/jpeg_session.h"

namespace headrace {
namespace {

constexpr int kMostRows = 4 * DCTSIZE;  // of a component in a row of iMCUs

}  // namespace

struct PlaneDecoder::State {
  JpegSession session;
};

PlaneDecoder::PlaneDecoder() : state_(std::make_unique<State>()) {
  if (!state_->session.create()) throw Error(Stage::kDecode, state_->session.message);
}

PlaneDecoder::~PlaneDecoder() = default;

void PlaneDecoder::decode(std::span<const uint8_t> data, const JpegHeader& header, const PlaneLayout& layout,
                          uint8_t* to, EntryPoints* entry_points) {
  if (!kLibraryHasVectors) throw NeedsPillow(Stage::kDecode, kNeedsVectors);
  JpegSession& session = state_->session;
  session.entry_points = entry_points;
  const JpegImage image(session);

  JDIMENSION from = static_cast<JDIMENSION>(layout.left), width = static_cast<JDIMENSION>(layout.right - layout.left);
  image.require(session.read_header(data, header));
  image.require(session.start(data, header, &from, &width));
  const J_COLOR_SPACE colours = session.cinfo.jpeg_color_space;
  if (colours != JCS_GRAYSCALE && (colours == JCS_RGB) != (layout.image.colour == Colour::kRgb))
    throw NeedsPillow(Stage::kDecode, "a colour space that the markers do not specify");
  image.require(session.use_planes());
  if (layout.first_imcu_row > 0) image.require(session.skip_imcu_rows(layout.first_imcu_row));

  JSAMPROW rows[3][kMostRows];
  JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
  for (int i = 0; i < layout.imcu_rows; ++i) {
    for (size_t c = 0; c < static_cast<size_t>(header.components); ++c) {
      const int count = layout.rows[c] / layout.imcu_rows;
      const size_t stride = static_cast<size_t>(layout.image.plane[c].stride);
      uint8_t* first = to + layout.offset[c] + static_cast<size_t>(i) * static_cast<size_t>(count) * stride;
      for (int y = 0; y < count; ++y) rows[c][y] = first + static_cast<size_t>(y) * stride;
    }
    image.require(session.read_planes(planes));
  }
}

}  // namespace headrace
