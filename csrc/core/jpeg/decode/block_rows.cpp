// The samples of a window of a JPEG without libjpeg-turbo's loops, one row of MCUs at a time.
#include "core/jpeg/decode/block_rows.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"

namespace headrace {
namespace {

void require(bool fine) {
  if (!fine) throw NeedsPillow(Stage::kDecode, kDamagedHuffman);
}

}  // namespace

const BlockLoops* own_loops(const BlockLoops* asked) {
  if (!own_huffman_wanted()) return nullptr;
  return asked == nullptr && !kLibraryHasVectors ? &kScalarBlocks : asked;
}

bool BlockRows::supports(const JpegHeader& header, const jpeg_decompress_struct& cinfo, const PlaneLayout& layout) {
  if (!has_own_huffman(header) && !header.progressive) return false;
  if (cinfo.jpeg_color_space == JCS_GRAYSCALE) return cinfo.num_components == 1;
  if (cinfo.jpeg_color_space != JCS_YCbCr || layout.image.colour != Colour::kYcc) return false;
  if (cinfo.max_h_samp_factor > kMostSampling || cinfo.max_v_samp_factor > kMostSampling) return false;
  return std::none_of(std::begin(layout.image.plane), std::end(layout.image.plane),
                      [](const Plane& plane) { return plane.upsampling == Upsampling::kReplicate; });
}

bool BlockRows::begin(JpegSession& session, std::span<const uint8_t> data, const JpegHeader& header,
                      const PlaneLayout& layout, int first, int last) {
  // libjpeg ignores the sampling of a single component, except in the number of rows that it decodes at once.
  const bool gray = header.components == 1;
  const jpeg_decompress_struct& cinfo = session.cinfo;
  const int mcu_width = kBlockEdge * (gray ? 1 : cinfo.max_h_samp_factor);
  columns_ = divide_up(header.size.width, mcu_width);
  first_column_ = layout.left / mcu_width;
  last_column_ = (layout.right - 1) / mcu_width;
  left_edge_ = layout.left == 0;
  right_edge_ = layout.right == header.size.width;

  components_ = header.components;
  int blocks = 0;  // in an MCU
  for (int i = 0; i < components_; ++i) {
    const jpeg_component_info& info = cinfo.comp_info[i];
    ComponentRows& component = component_[static_cast<size_t>(i)];
    component.begin(*cinfo.quant_tbl_ptrs[info.quant_tbl_no], layout.image.plane[i], gray ? 1 : info.h_samp_factor,
                    gray ? 1 : info.v_samp_factor, last_column_ - first_column_ + 1);
    blocks += component.blocks_x() * component.blocks_y();
  }
  mcus_at_once_ = blocks >= kManyBlocks ? kMcusOfManyBlocks : kMcus;
  std::memset(coefficients_, 0, sizeof coefficients_);

  huffman_ = nullptr;
  if (header.progressive) return progressive_.begin(data, header, {first, last, first_column_, last_column_});
  huffman_ = &session.begin_huffman(data, header, layout.left, layout.right);
  if (lanes_ != nullptr) huffman_->decode_ahead(*lanes_, first, last);
  for (int mcus = first * columns_; mcus > 0; --mcus) require(huffman_->next_mcu(nullptr));
  return true;
}

void BlockRows::read(int row) {
  for (int i = 0; i < components_; ++i) component_[static_cast<size_t>(i)].advance(row);
  if (huffman_ != nullptr)
    read_sequential_row();
  else
    read_progressive_row(row);
  for (int i = 0; i < components_; ++i) component_[static_cast<size_t>(i)].repeat_sides(left_edge_, right_edge_);
}

void BlockRows::finish() {
  if (huffman_ == nullptr) require(progressive_.finish());
}

void BlockRows::read_sequential_row() {
  for (int i = 0; i < first_column_; ++i) require(huffman_->next_mcu(nullptr));
  for (int i = first_column_; i <= last_column_; i += mcus_at_once_)
    read_mcus(i - first_column_, std::min(mcus_at_once_, last_column_ - i + 1));
  for (int i = last_column_ + 1; i < columns_; ++i) require(huffman_->next_mcu(nullptr));
}

void BlockRows::read_progressive_row(int row) {
  require(progressive_.read(row));
  for (int i = 0; i < components_; ++i) {
    ComponentRows& component = component_[static_cast<size_t>(i)];
    for (int y = 0; y < component.blocks_y(); ++y)
      component.invert(loops_, progressive_.line(i, row, y), 0, last_column_ - first_column_ + 1, y);
  }
}

void BlockRows::read_mcus(int mcu, int count) {
  // Blocks of one component and line are side by side, in whole groups.
  int16_t(*next[kMaxBlocksInMcu])[kBlockValues];
  int step[kMaxBlocksInMcu], blocks = 0;
  int16_t(*line)[kBlockValues] = coefficients_;
  for (int i = 0; i < components_; ++i) {
    const int wide = component_[static_cast<size_t>(i)].blocks_x();
    for (int y = 0; y < component_[static_cast<size_t>(i)].blocks_y(); ++y, line += mcus_at_once_ * wide)
      for (int x = 0; x < wide; ++x, ++blocks) {
        next[blocks] = line + x;
        step[blocks] = wide;
      }
  }
  for (int i = 0; i < count; ++i) {
    require(huffman_->next_mcu(next));
    for (int b = 0; b < blocks; ++b) next[b] += step[b];
  }
  line = coefficients_;
  for (int i = 0; i < components_; ++i) {
    ComponentRows& component = component_[static_cast<size_t>(i)];
    const int wide = component.blocks_x();
    for (int y = 0; y < component.blocks_y(); ++y, line += mcus_at_once_ * wide) {
      component.invert(loops_, *line, mcu, count, y);
      std::memset(line, 0, static_cast<size_t>(count * wide) * sizeof *line);
    }
  }
}

}  // namespace headrace
