// The samples of a window of a JPEG without libjpeg-turbo's loops: one row of MCUs at a time, and of its columns only
// those that are wanted. See docs/decisions/0038-own-blocks.md.
#pragma once

#include <array>
#include <span>

#include "core/jpeg/decode/component_rows.h"
#include "core/jpeg/huffman/row_lanes.h"
#include "core/jpeg/idct/block_loops.h"
#include "core/jpeg/planes/plane_layout.h"
#include "core/jpeg/progressive/progressive_decoder.h"
#include "core/jpeg/sequential/jpeg_session.h"

namespace headrace {

/// The loops for BlockRows where these are asked for; null: libjpeg-turbo decodes all files.
const BlockLoops* own_loops(const BlockLoops* asked);

class BlockRows {
 public:
  static constexpr int kMostSampling = 2;  // of a component, in each direction

  explicit BlockRows(const BlockLoops& loops) : loops_(loops), lanes_(row_lanes_named(loops.name)) {}

  /// Whether the samples are those of libjpeg-turbo, which must have read the header, `cinfo`: gray and YCbCr whose
  /// components are not sampled, or with half the rows, half the columns, or both.
  static bool supports(const JpegHeader& header, const jpeg_decompress_struct& cinfo, const PlaneLayout& layout);
  /// Whether rows that are known to begin somewhere may be decoded side by side.
  bool has_lanes() const { return lanes_ != nullptr; }

  /// Prepares for rows `first` to `last` of MCUs, and of the columns those that `layout` covers. False if the file has
  /// scans that only libjpeg-turbo reads. Throws NeedsPillow.
  bool begin(JpegSession& session, std::span<const uint8_t> data, const JpegHeader& header, const PlaneLayout& layout,
             int first, int last);
  /// Makes the samples of the next row of MCUs, `row`. Throws NeedsPillow.
  void read(int row);
  /// Call after the last row. Throws NeedsPillow.
  void finish();

  int components() const { return components_; }
  const ComponentRows& component(int index) const { return component_[static_cast<size_t>(index)]; }

 private:
  // MCUs are decoded in batches, so that their coefficients stay in L1 and loads do not wait for single stores.
  static constexpr int kMcus = 16, kMcusOfManyBlocks = 8, kManyBlocks = 4, kMostBlocks = kMaxBlocksInMcu * 8;

  void read_sequential_row();
  void read_progressive_row(int row);
  void read_mcus(int mcu, int count);

  const BlockLoops& loops_;
  const RowLanes* const lanes_;        // null: none
  HuffmanDecoder* huffman_ = nullptr;  // null: the file is progressive
  ProgressiveDecoder progressive_;
  std::array<ComponentRows, 3> component_;
  int components_ = 0, mcus_at_once_ = 0;
  int columns_ = 0, first_column_ = 0, last_column_ = 0;  // MCUs: of the image, and the window that is decoded
  bool left_edge_ = false, right_edge_ = false;           // the window reaches these sides of the image
  alignas(kCacheLine) int16_t coefficients_[kMostBlocks][kBlockValues] = {};
};

}  // namespace headrace
