// Decodes a box of a JPEG to RGBX rows: with our own loops if the file is of a usual kind, else with libjpeg-turbo.
#include "core/jpeg/decode/jpeg_decoder.h"

#include <optional>

#include "core/base/error.h"
#include "core/base/row_buffer.h"
#include "core/jpeg/decode/block_decoder.h"
#include "core/jpeg/decode/library_rows.h"
#include "core/jpeg/planes/plane_layout.h"
#include "core/jpeg/sequential/jpeg_session.h"

namespace headrace {

struct JpegDecoder::State {
  JpegSession session;
  RowBuffer rows;  // the rows of one push: enough to make pushes cheap, few enough to stay in L1
  std::optional<BlockDecoder> blocks;
};

namespace {

/// Whether rows of MCUs, or parts of them, are left out on the way to the last row of a box. Elsewhere, without lanes,
/// the hash of the file would be in vain.
bool leaves_codes_out(const Box& box, Size image) { return box.y > 0 || box.x + box.width < image.width; }

}  // namespace

JpegDecoder::JpegDecoder(const BlockLoops* loops) : state_(std::make_unique<State>()) {
  if (!state_->session.create()) throw Error(Stage::kDecode, state_->session.message);
  if (const BlockLoops* own = own_loops(loops)) state_->blocks.emplace(*own);
}

JpegDecoder::~JpegDecoder() = default;

void JpegDecoder::decode(std::span<const uint8_t> data, const JpegHeader& header, Box box, RowSink& sink,
                         EntryPoints* entry_points) {
  JpegSession& session = state_->session;
  const bool pays = leaves_codes_out(box, header.size) || (state_->blocks && state_->blocks->has_lanes());
  session.entry_points = pays ? entry_points : nullptr;
  const JpegImage image(session);
  image.require(session.read_header(data, header));
  if (state_->blocks) {
    const PlaneLayout layout = plane_layout(header, box);
    if (BlockRows::supports(header, session.cinfo, layout) &&
        state_->blocks->decode(session, data, header, layout, box, state_->rows, sink))
      return;
  }
  if (!kLibraryHasVectors) throw NeedsPillow(Stage::kDecode, kNeedsVectors);
  push_library_rows(image, session, data, header, box, state_->rows, sink);
}

}  // namespace headrace
