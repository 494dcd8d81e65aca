// Samples of one row of iMCUs at a time: copied from those of our own loops, or read by libjpeg-turbo directly to their
// destination.
#include "core/jpeg/decode/plane_decoder.h"

#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "core/jpeg/decode/block_rows.h"
#include "core/jpeg/sequential/jpeg_session.h"

namespace headrace {
namespace {

constexpr int kMostRows = 4 * DCTSIZE;  // of a component in a row of iMCUs

/// The place of row `y` of the i-th row of iMCUs of component `c`.
uint8_t* place_of(const PlaneLayout& layout, uint8_t* base, size_t c, int i, int y) {
  const int row = i * (layout.rows[c] / layout.imcu_rows) + y;
  return base + layout.offset[c] + static_cast<size_t>(row) * static_cast<size_t>(layout.image.plane[c].stride);
}

/// Whether rows of iMCUs are rows of MCUs: in an image of one component an MCU is one block.
bool has_rows_of_mcus(const JpegHeader& header) { return header.components > 1 || header.component[0].v == 1; }

void read_library_planes(const JpegImage& image, JpegSession& session, std::span<const uint8_t> data,
                         const JpegHeader& header, const PlaneLayout& layout, uint8_t* to) {
  JDIMENSION from = static_cast<JDIMENSION>(layout.left), width = static_cast<JDIMENSION>(layout.right - layout.left);
  image.require(session.start(data, header, &from, &width));
  const J_COLOR_SPACE colours = session.cinfo.jpeg_color_space;
  if (colours != JCS_GRAYSCALE && (colours == JCS_RGB) != (layout.image.colour == Colour::kRgb))
    throw NeedsPillow(Stage::kDecode, "a colour space that the markers do not specify");
  image.require(session.use_planes());
  if (layout.first_imcu_row > 0) image.require(session.skip_imcu_rows(layout.first_imcu_row));

  JSAMPROW rows[3][kMostRows];
  JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
  for (int i = 0; i < layout.imcu_rows; ++i) {
    for (size_t c = 0; c < static_cast<size_t>(header.components); ++c)
      for (int y = 0; y < layout.rows[c] / layout.imcu_rows; ++y) rows[c][y] = place_of(layout, to, c, i, y);
    image.require(session.read_planes(planes));
  }
}

}  // namespace

struct PlaneDecoder::State {
  JpegSession session;
  std::optional<BlockRows> blocks;

  bool decode_blocks(std::span<const uint8_t> data, const JpegHeader& header, const PlaneLayout& layout, uint8_t* to);
};

/// False if only libjpeg-turbo reads the file.
bool PlaneDecoder::State::decode_blocks(std::span<const uint8_t> data, const JpegHeader& header,
                                        const PlaneLayout& layout, uint8_t* to) {
  const int first = layout.first_imcu_row;
  if (!has_rows_of_mcus(header) || !BlockRows::supports(header, session.cinfo, layout) ||
      !blocks->begin(session, data, header, layout, first, first + layout.imcu_rows - 1))
    return false;
  for (int i = 0; i < layout.imcu_rows; ++i) {
    blocks->read(first + i);
    for (int c = 0; c < header.components; ++c) {
      const ComponentRows& component = blocks->component(c);
      const size_t width = static_cast<size_t>(layout.image.plane[c].stride);
      const int rows = component.blocks_y() * kBlockEdge;
      for (int y = 0; y < rows; ++y)
        std::memcpy(place_of(layout, to, static_cast<size_t>(c), i, y), component.row((first + i) * rows + y), width);
    }
  }
  blocks->finish();
  return true;
}

PlaneDecoder::PlaneDecoder(const BlockLoops* loops) : state_(std::make_unique<State>()) {
  if (!state_->session.create()) throw Error(Stage::kDecode, state_->session.message);
  if (const BlockLoops* own = own_loops(loops)) state_->blocks.emplace(*own);
}

PlaneDecoder::~PlaneDecoder() = default;

void PlaneDecoder::decode(std::span<const uint8_t> data, const JpegHeader& header, const PlaneLayout& layout,
                          uint8_t* to, EntryPoints* entry_points) {
  JpegSession& session = state_->session;
  session.entry_points = entry_points;
  const JpegImage image(session);
  image.require(session.read_header(data, header));
  if (state_->blocks && state_->decode_blocks(data, header, layout, to)) return;
  if (!kLibraryHasVectors) throw NeedsPillow(Stage::kDecode, kNeedsVectors);
  read_library_planes(image, session, data, header, layout, to);
}

}  // namespace headrace
