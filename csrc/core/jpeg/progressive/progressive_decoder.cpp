// The coefficients of a progressive JPEG, some rows of MCUs at a time: all its scans are read in parallel, row by row.
#include "core/jpeg/progressive/progressive_decoder.h"

#include <algorithm>

namespace headrace {
namespace {

// Coefficients of a strip. More rows: the scans take turns less often, and each reloads its tables then. Fewer: the
// coefficients stay in L2 from the first scan to the inverse DCT.
constexpr size_t kStripBytes = size_t{128} << 10;

/// Whether a later scan adds bits to coefficients of scan `at`.
bool is_refined(std::span<const ProgressiveScan> scans, size_t at) {
  const ProgressiveScan& scan = scans[at];
  return std::any_of(scans.begin() + static_cast<ptrdiff_t>(at) + 1, scans.end(), [&](const ProgressiveScan& later) {
    return later.high != 0 && later.first != 0 && scan.first != 0 && later.component[0] == scan.component[0] &&
           later.first <= scan.last && scan.first <= later.last;
  });
}

}  // namespace

bool ProgressiveDecoder::begin(std::span<const uint8_t> data, const JpegHeader& header, const McuWindow& window) {
  if (!header.progressive || !list_scans(data, header, &scans_)) return false;
  window_ = window;
  components_ = header.components;
  const bool gray = components_ == 1;  // its sampling is ignored
  int max_h = 1, max_v = 1;
  for (size_t i = 0; !gray && i < static_cast<size_t>(components_); ++i) {
    max_h = std::max<int>(max_h, header.component[i].h);
    max_v = std::max<int>(max_v, header.component[i].v);
  }
  const int mcu_columns = divide_up(header.size.width, 8 * max_h);
  mcu_rows_ = divide_up(header.size.height, 8 * max_v);
  size_t row_bytes = 0;
  for (size_t i = 0; i < static_cast<size_t>(components_); ++i) {
    BlockGrid& grid = grids_[i];
    grid.blocks_x = gray ? 1 : header.component[i].h;
    grid.blocks_y = gray ? 1 : header.component[i].v;
    grid.across = divide_up(header.size.width * grid.blocks_x, 8 * max_h);
    grid.down = divide_up(header.size.height * grid.blocks_y, 8 * max_v);
    grid.padded = mcu_columns * grid.blocks_x;
    grid.first_column = window.first_column * grid.blocks_x;
    grid.last_column = (window.last_column + 1) * grid.blocks_x - 1;
    row_bytes += StripLines::bytes_of_line(grid) * static_cast<size_t>(grid.blocks_y);
  }
  const size_t most_rows = static_cast<size_t>(mcu_rows_);
  strip_rows_ = static_cast<int>(std::clamp<size_t>(kStripBytes / row_bytes, 1, most_rows));
  for (size_t i = 0; i < static_cast<size_t>(components_); ++i)
    lines_[i].begin(grids_[i], strip_rows_ * grids_[i].blocks_y);
  while (readers_.size() < scans_.size()) readers_.emplace_back();
  const std::span<const BlockGrid> grids(grids_.data(), static_cast<size_t>(components_));
  for (size_t i = 0; i < scans_.size(); ++i)
    readers_[i].begin(loops_, data, scans_[i], is_refined(scans_, i), grids, mcu_columns);
  next_row_ = 0;
  return true;
}

bool ProgressiveDecoder::read_strip(int first, int end) {
  const bool wanted = first >= window_.first_row;
  for (size_t i = 0; i < static_cast<size_t>(components_); ++i)
    lines_[i].clear(first * grids_[i].blocks_y, (end - first) * grids_[i].blocks_y, wanted);
  next_row_ = end;
  for (size_t i = 0; i < scans_.size(); ++i)
    for (int row = first; row < end; ++row)
      if (!readers_[i].read(row, lines_)) return false;
  return true;
}

bool ProgressiveDecoder::read(int row) {
  while (next_row_ <= row) {
    const int limit = next_row_ < window_.first_row ? window_.first_row : window_.last_row + 1;
    if (!read_strip(next_row_, std::min(next_row_ + strip_rows_, limit))) return false;
  }
  return true;
}

bool ProgressiveDecoder::finish() {
  for (size_t i = 0; i < scans_.size(); ++i)
    if (!readers_[i].pass(next_row_, mcu_rows_)) return false;
  return true;
}

const int16_t* ProgressiveDecoder::line(int component, int row, int y) {
  const size_t i = static_cast<size_t>(component);
  return lines_[i].coefficients(row * grids_[i].blocks_y + y);
}

}  // namespace headrace
