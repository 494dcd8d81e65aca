// Decodes a box of a JPEG without libjpeg-turbo's loops: coefficients, samples and pixels of one row of MCUs at a time.
#include "core/jpeg/decode/block_decoder.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"

namespace headrace {
namespace {

constexpr int kMostGroupRows = 2;  // rows of pixels in a row group
constexpr int kMostRows = (ComponentRows::kGroups + 1) * kMostGroupRows;

int divide_up(int a, int b) { return (a + b - 1) / b; }

void require(bool fine) {
  if (!fine) throw NeedsPillow(Stage::kDecode, kDamagedHuffman);
}

bool looks_beyond_its_group(const Plane& plane) {
  return plane.upsampling == Upsampling::kH1V2 || plane.upsampling == Upsampling::kH2V2;
}

}  // namespace

bool BlockDecoder::supports(const jpeg_decompress_struct& cinfo, const PlaneLayout& layout) {
  if (cinfo.jpeg_color_space == JCS_GRAYSCALE) return cinfo.num_components == 1;
  if (cinfo.jpeg_color_space != JCS_YCbCr || layout.image.colour != Colour::kYcc) return false;
  if (cinfo.max_h_samp_factor > 2 || cinfo.max_v_samp_factor > kMostGroupRows) return false;
  return std::none_of(std::begin(layout.image.plane), std::end(layout.image.plane),
                      [](const Plane& plane) { return plane.upsampling == Upsampling::kReplicate; });
}

bool BlockDecoder::decode(JpegSession& session, std::span<const uint8_t> data, const JpegHeader& header,
                          const PlaneLayout& layout, Box box, RowBuffer& rows, RowSink& sink) {
  // libjpeg ignores the sampling of a single component, except in the number of rows that it decodes at once.
  const bool gray = header.components == 1;
  const jpeg_decompress_struct& cinfo = session.cinfo;
  const int group_rows = gray ? 1 : cinfo.max_v_samp_factor;
  const int mcu_width = kBlockEdge * (gray ? 1 : cinfo.max_h_samp_factor), mcu_height = kBlockEdge * group_rows;
  const int mcu_rows = divide_up(header.size.height, mcu_height);
  columns_ = divide_up(header.size.width, mcu_width);
  first_column_ = layout.left / mcu_width;
  last_column_ = (layout.right - 1) / mcu_width;
  left_edge_ = layout.left == 0;
  right_edge_ = layout.right == header.size.width;

  components_ = header.components;
  int blocks = 0;  // in an MCU
  int lag = 0;     // row groups that have to wait for the next row of MCUs
  for (int i = 0; i < components_; ++i) {
    const jpeg_component_info& info = cinfo.comp_info[i];
    const Plane& plane = layout.image.plane[i];
    ComponentRows& component = component_[static_cast<size_t>(i)];
    component.begin(*cinfo.quant_tbl_ptrs[info.quant_tbl_no], plane, gray ? 1 : info.h_samp_factor,
                    gray ? 1 : info.v_samp_factor, last_column_ - first_column_ + 1);
    blocks += component.blocks_x() * component.blocks_y();
    if (looks_beyond_its_group(plane)) lag = 1;
    upsampled_[static_cast<size_t>(i)].resize(static_cast<size_t>(box.width) + 2 * kSampleSlack);
  }
  mcus_at_once_ = blocks >= kManyBlocks ? kMcusOfManyBlocks : kMcus;
  rows.reset(kMostRows, divide_up(box.width, kPixelGroup) * kPixelGroup * kPixelBytes);
  std::memset(coefficients_, 0, sizeof coefficients_);

  const int first_group = box.y / group_rows, last_group = (box.y + box.height - 1) / group_rows;
  const int first_row = std::max(first_group - lag, 0) / ComponentRows::kGroups;
  const int last_row = std::min((last_group + lag) / ComponentRows::kGroups, mcu_rows - 1);
  HuffmanDecoder* huffman = nullptr;
  if (header.progressive) {
    if (!progressive_.begin(data, header, {first_row, last_row, first_column_, last_column_})) return false;
  } else {
    huffman = &session.begin_huffman(data, header, layout.left, layout.right);
    if (lanes_ != nullptr) huffman->decode_ahead(*lanes_, first_row, last_row);
    for (int mcus = first_row * columns_; mcus > 0; --mcus) require(huffman->next_mcu(nullptr));
  }
  for (int row = first_row; row <= last_row; ++row) {
    for (int i = 0; i < components_; ++i) component_[static_cast<size_t>(i)].advance(row);
    if (huffman != nullptr)
      read_row(*huffman);
    else
      read_progressive_row(row);
    const int ready = row == mcu_rows - 1 ? last_group : (row + 1) * ComponentRows::kGroups - 1 - lag;
    const int from = std::max(first_group, row * ComponentRows::kGroups - lag), to = std::min(last_group, ready);
    const int first = std::max(box.y, from * group_rows);
    const int count = std::min(box.y + box.height, (to + 1) * group_rows) - first;
    if (count <= 0) continue;
    make_rows(box, first, count, rows);
    sink.push(rows.row(0), rows.stride(), count);
  }
  if (header.progressive) require(progressive_.finish());
  return true;
}

void BlockDecoder::read_row(HuffmanDecoder& huffman) {
  for (int i = 0; i < first_column_; ++i) require(huffman.next_mcu(nullptr));
  for (int i = first_column_; i <= last_column_; i += mcus_at_once_)
    read_mcus(huffman, i - first_column_, std::min(mcus_at_once_, last_column_ - i + 1));
  for (int i = last_column_ + 1; i < columns_; ++i) require(huffman.next_mcu(nullptr));
  for (int i = 0; i < components_; ++i) component_[static_cast<size_t>(i)].repeat_sides(left_edge_, right_edge_);
}

void BlockDecoder::read_progressive_row(int row) {
  require(progressive_.read(row));
  for (int i = 0; i < components_; ++i) {
    ComponentRows& component = component_[static_cast<size_t>(i)];
    for (int y = 0; y < component.blocks_y(); ++y)
      component.invert(loops_, progressive_.line(i, row, y), 0, last_column_ - first_column_ + 1, y);
    component.repeat_sides(left_edge_, right_edge_);
  }
}

void BlockDecoder::read_mcus(HuffmanDecoder& huffman, int mcu, int count) {
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
    require(huffman.next_mcu(next));
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

void BlockDecoder::make_rows(Box box, int first, int count, RowBuffer& rows) {
  const uint8_t* values[3] = {};
  for (int i = 0; i < count; ++i) {
    for (size_t c = 0; c < static_cast<size_t>(components_); ++c)
      values[c] = component_[c].upsampled(loops_, box.x, first + i, box.width, upsampled_[c].data() + kSampleSlack);
    if (components_ == 1)
      loops_.gray(values[0], box.width, rows.row(i));
    else
      loops_.colour(values[0], values[1], values[2], box.width, rows.row(i));
  }
}

}  // namespace headrace
