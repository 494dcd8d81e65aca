// One scan of a progressive JPEG, read row by row.
#include "core/jpeg/progressive/scan_reader.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/jpeg/huffman/huffman_block.h"

namespace headrace {
namespace {

// libjpeg stops if a DC value leaves the range of int. 2^16 differences of less than 2^15 stay inside.
constexpr int64_t kMostBlocksPassed = 1 << 16;
constexpr int64_t kMostDc = int64_t{1} << 30;  // checked once per row of MCUs, which adds less than 2^30
constexpr unsigned kMostValueBits = 15;

}  // namespace

void ScanReader::begin(const ScanLoops& loops, std::span<const uint8_t> data, const ProgressiveScan& scan, bool refined,
                       std::span<const BlockGrid> grids, int mcu_columns) {
  loops_ = &loops;
  scan_ = &scan;
  grids_ = grids;
  refined_ = refined;
  single_ = scan.components == 1;
  mcu_columns_ = mcu_columns;
  left_ = segment_ = 0;
  bytes_.begin(data.subspan(scan.begin, scan.end - scan.begin), kScanPadding);
  position_ = {};
  if (scan.first != 0) {
    // A value and its shift fit into 16 bits; a refining scan codes signs alone.
    ac_.build(scan.ac, scan.high != 0 ? 1 : kMostValueBits - static_cast<unsigned>(scan.low));
    band_ = {&ac_, scan.first, scan.last, scan.low};
  } else if (scan.high == 0) {
    for (size_t i = 0; i < static_cast<size_t>(scan.components); ++i)
      if (dc_[i].spec != scan.dc[i]) dc_[i].build(scan.dc[i]);
  }
}

/// Begins the next segment. False: there is none, or bytes of the current one are left.
bool ScanReader::enter() {
  if (segment_ != 0) {
    const ptrdiff_t bits = (position_.next - bytes_.data()) * 8 - static_cast<ptrdiff_t>(position_.count);
    if (static_cast<size_t>(bits + 7) / 8 != bytes_.size()) return false;
  }
  if (!bytes_.enter(segment_++)) return false;
  Bits in{0, bytes_.data(), 0};
  in.refill();
  position_ = {in.bits, in.next, in.count, 0, bytes_.data() + bytes_.size()};
  last_dc_.fill(0);
  left_ = scan_->restart_interval != 0 ? scan_->restart_interval : std::numeric_limits<int>::max();
  return true;
}

bool ScanReader::read(int row, std::span<StripLines> lines) {
  return scan_->first != 0 ? read_band(row, lines[scan_->component[0]]) : read_values(row, lines);
}

bool ScanReader::read_band(int row, StripLines& lines) {
  const BlockGrid& grid = grids_[scan_->component[0]];
  const auto loop = scan_->high != 0 ? loops_->refine : loops_->first;
  const int end = std::min((row + 1) * grid.blocks_y, grid.down);
  for (int line = row * grid.blocks_y; line < end; ++line) {
    uint64_t* const masks = lines.masks(line);
    int16_t* const wanted = lines.coefficients(line);
    for (int column = 0; column < grid.across;) {
      if (left_ == 0 && !enter()) return false;
      // Left of the window, inside, right of it; and never across a restart.
      const bool inside = wanted != nullptr && column >= grid.first_column && column <= grid.last_column;
      int stop = grid.across;
      if (inside)
        stop = std::min(stop, grid.last_column + 1);
      else if (wanted != nullptr && column < grid.first_column)
        stop = std::min(stop, grid.first_column);
      const int count = std::min(stop - column, left_);
      const auto at = static_cast<size_t>(column - grid.first_column);
      if (!loop(&position_, band_, count, refined_ || scan_->high != 0 ? masks + column : nullptr,
                inside ? wanted + at * 64 : nullptr))
        return false;
      column += count;
      left_ -= count;
    }
  }
  return true;
}

/// The DC value of one block, of the member'th component of the scan. `lines`: nullptr if the value is not wanted.
ALWAYS_INLINE bool ScanReader::read_value(StripLines* lines, size_t member, int column, int line) {
  Bits in{position_.bits, position_.next, position_.count};
  int16_t* to = nullptr;
  if (lines != nullptr) {
    const BlockGrid& grid = grids_[scan_->component[member]];
    int16_t* const first = lines->coefficients(line);
    if (first != nullptr && column >= grid.first_column && column <= grid.last_column)
      to = first + static_cast<size_t>(column - grid.first_column) * 64;
  }
  if (scan_->high != 0) {
    in.refill();
    if (to != nullptr && in.bits >> 63 != 0) *to = static_cast<int16_t>(*to | 1 << scan_->low);
    in.drop(1);
  } else {
    int difference;
    if (!read_dc(&in, dc_[member], &difference)) return false;
    last_dc_[member] += difference;
    if (to != nullptr) *to = static_cast<int16_t>(static_cast<uint64_t>(last_dc_[member]) << scan_->low);
  }
  position_.bits = in.bits;
  position_.next = in.next;
  position_.count = in.count;
  return true;
}

bool ScanReader::read_values(int row, std::span<StripLines> lines) {
  const auto of = [&](size_t member) { return lines.empty() ? nullptr : &lines[scan_->component[member]]; };
  const auto past_the_end = [&] {
    return (position_.next - position_.end) * 8 > static_cast<ptrdiff_t>(position_.count);
  };
  if (single_) {
    const BlockGrid& grid = grids_[scan_->component[0]];
    const int end = std::min((row + 1) * grid.blocks_y, grid.down);
    for (int line = row * grid.blocks_y; line < end; ++line)
      for (int column = 0; column < grid.across; ++column, --left_)
        if ((left_ == 0 && !enter()) || !read_value(of(0), 0, column, line) || past_the_end()) return false;
  } else {
    for (int mcu = 0; mcu < mcu_columns_; ++mcu, --left_) {
      if (left_ == 0 && !enter()) return false;
      for (size_t i = 0; i < static_cast<size_t>(scan_->components); ++i) {
        const BlockGrid& grid = grids_[scan_->component[i]];
        for (int y = 0; y < grid.blocks_y; ++y)
          for (int x = 0; x < grid.blocks_x; ++x)
            if (!read_value(of(i), i, mcu * grid.blocks_x + x, row * grid.blocks_y + y)) return false;
      }
      if (past_the_end()) return false;
    }
  }
  return std::all_of(last_dc_.begin(), last_dc_.end(), [](int64_t v) { return -kMostDc < v && v < kMostDc; });
}

bool ScanReader::pass(int row, int rows) {
  if (scan_->first != 0 || scan_->high != 0) return true;
  int64_t blocks = 0;  // per MCU, in the component that has the most
  for (size_t i = 0; i < static_cast<size_t>(scan_->components); ++i) {
    const BlockGrid& grid = grids_[scan_->component[i]];
    blocks = std::max(blocks, single_ ? int64_t{1} : int64_t{grid.blocks_x} * grid.blocks_y);
  }
  const BlockGrid& grid = grids_[scan_->component[0]];
  const int64_t all = single_ ? int64_t{grid.across} * grid.down : int64_t{mcu_columns_} * rows;
  const int64_t mcus = scan_->restart_interval != 0 ? std::min<int64_t>(scan_->restart_interval, all) : all;
  if (mcus * blocks <= kMostBlocksPassed) return true;
  for (; row < rows; ++row)
    if (!read_values(row, {})) return false;
  return true;
}

}  // namespace headrace
