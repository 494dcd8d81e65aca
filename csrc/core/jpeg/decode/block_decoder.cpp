// Decodes a box of a JPEG to RGBX rows without libjpeg-turbo's loops: samples of one row of MCUs at a time, and of them
// the rows of pixels whose samples are all there.
#include "core/jpeg/decode/block_decoder.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr int kMostRows = (ComponentRows::kGroups + 1) * BlockRows::kMostSampling;

bool looks_beyond_its_group(const Plane& plane) {
  return plane.upsampling == Upsampling::kH1V2 || plane.upsampling == Upsampling::kH2V2;
}

}  // namespace

bool BlockDecoder::decode(JpegSession& session, std::span<const uint8_t> data, const JpegHeader& header,
                          const PlaneLayout& layout, Box box, RowBuffer& rows, RowSink& sink) {
  const int group_rows = header.components == 1 ? 1 : session.cinfo.max_v_samp_factor;
  const bool waits = std::any_of(layout.image.plane, layout.image.plane + header.components, looks_beyond_its_group);
  const int lag = waits ? 1 : 0;  // row groups that have to wait for the next row of MCUs
  const int first_group = box.y / group_rows, last_group = (box.y + box.height - 1) / group_rows;
  const int mcu_rows = divide_up(header.size.height, ComponentRows::kGroups * group_rows);
  const int first_row = std::max(first_group - lag, 0) / ComponentRows::kGroups;
  const int last_row = std::min((last_group + lag) / ComponentRows::kGroups, mcu_rows - 1);
  if (!samples_.begin(session, data, header, layout, first_row, last_row)) return false;

  for (auto& line : upsampled_) line.resize(static_cast<size_t>(box.width) + 2 * kSampleSlack);
  rows.reset(kMostRows, divide_up(box.width, kPixelGroup) * kPixelGroup * kPixelBytes);
  for (int row = first_row; row <= last_row; ++row) {
    samples_.read(row);
    const int ready = row == mcu_rows - 1 ? last_group : (row + 1) * ComponentRows::kGroups - 1 - lag;
    const int from = std::max(first_group, row * ComponentRows::kGroups - lag), to = std::min(last_group, ready);
    const int first = std::max(box.y, from * group_rows);
    const int count = std::min(box.y + box.height, (to + 1) * group_rows) - first;
    if (count <= 0) continue;
    make_rows(box, first, count, rows);
    sink.push(rows.row(0), rows.stride(), count);
  }
  samples_.finish();
  return true;
}

void BlockDecoder::make_rows(Box box, int first, int count, RowBuffer& rows) {
  const uint8_t* values[3] = {};
  const int components = samples_.components();
  for (int i = 0; i < count; ++i) {
    for (int c = 0; c < components; ++c)
      values[c] = samples_.component(c).upsampled(loops_, box.x, first + i, box.width,
                                                  upsampled_[static_cast<size_t>(c)].data() + kSampleSlack);
    if (components == 1)
      loops_.gray(values[0], box.width, rows.row(i));
    else
      loops_.colour(values[0], values[1], values[2], box.width, rows.row(i));
  }
}

}  // namespace headrace
