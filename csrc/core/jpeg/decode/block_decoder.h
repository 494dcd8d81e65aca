// Decodes a box of a JPEG to RGBX rows without libjpeg-turbo's loops.
#pragma once

#include <array>
#include <span>

#include "core/base/aligned_array.h"
#include "core/base/row_buffer.h"
#include "core/jpeg/decode/block_rows.h"

namespace headrace {

class BlockDecoder {
 public:
  explicit BlockDecoder(const BlockLoops& loops) : loops_(loops), samples_(loops) {}

  /// As BlockRows has it.
  bool has_lanes() const { return samples_.has_lanes(); }
  /// As JpegDecoder::decode, where BlockRows supports the file. `layout`: that of `box`. False, and no row is pushed,
  /// if the file has scans that only libjpeg-turbo reads.
  bool decode(JpegSession& session, std::span<const uint8_t> data, const JpegHeader& header, const PlaneLayout& layout,
              Box box, RowBuffer& rows, RowSink& sink);

 private:
  void make_rows(Box box, int first, int count, RowBuffer& rows);

  const BlockLoops& loops_;
  BlockRows samples_;
  std::array<AlignedArray<uint8_t>, 3> upsampled_;
};

}  // namespace headrace
