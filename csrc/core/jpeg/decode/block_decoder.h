// Decodes a box of a JPEG without libjpeg-turbo's loops: coefficients, samples and pixels of one row of MCUs at a time,
// and of its columns only those that the box needs. See docs/decisions/0038-own-blocks.md.
#pragma once

#include <array>
#include <span>

#include "core/base/aligned_array.h"
#include "core/base/row_buffer.h"
#include "core/jpeg/decode/component_rows.h"
#include "core/jpeg/huffman/row_lanes.h"
#include "core/jpeg/idct/block_loops.h"
#include "core/jpeg/planes/plane_layout.h"
#include "core/jpeg/progressive/progressive_decoder.h"
#include "core/jpeg/sequential/jpeg_session.h"

namespace headrace {

class BlockDecoder {
 public:
  explicit BlockDecoder(const BlockLoops& loops) : loops_(loops), lanes_(row_lanes_named(loops.name)) {}

  /// Whether decode() makes the same pixels as libjpeg-turbo, which must have read the header: gray and YCbCr whose
  /// components are not sampled, or with half the rows, half the columns, or both.
  static bool supports(const jpeg_decompress_struct& cinfo, const PlaneLayout& layout);
  /// Whether rows that are known to begin somewhere may be decoded side by side.
  bool has_lanes() const { return lanes_ != nullptr; }
  /// As JpegDecoder::decode. `layout`: that of `box`. False, and no row is pushed, if the file has scans that only
  /// libjpeg-turbo reads.
  bool decode(JpegSession& session, std::span<const uint8_t> data, const JpegHeader& header, const PlaneLayout& layout,
              Box box, RowBuffer& rows, RowSink& sink);

 private:
  // MCUs are decoded in batches, so that their coefficients stay in L1 and loads do not wait for single stores.
  static constexpr int kMcus = 16, kMcusOfManyBlocks = 8, kManyBlocks = 4, kMostBlocks = kMaxBlocksInMcu * 8;

  void read_row(HuffmanDecoder& huffman);
  void read_progressive_row(int row);
  void read_mcus(HuffmanDecoder& huffman, int mcu, int count);
  void make_rows(Box box, int first, int count, RowBuffer& rows);

  const BlockLoops& loops_;
  const RowLanes* const lanes_;  // null: none
  ProgressiveDecoder progressive_;
  std::array<ComponentRows, 3> component_;
  int components_ = 0, mcus_at_once_ = 0;
  int columns_ = 0, first_column_ = 0, last_column_ = 0;  // MCUs: of the image, and the window that is decoded
  bool left_edge_ = false, right_edge_ = false;           // the window reaches these sides of the image
  alignas(kCacheLine) int16_t coefficients_[kMostBlocks][kBlockValues] = {};
  std::array<AlignedArray<uint8_t>, 3> upsampled_;
};

}  // namespace headrace
