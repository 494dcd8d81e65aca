// Rows of MCUs that are decoded before they are asked for, many side by side: see Note [row lanes].
#include "core/jpeg/ahead/rows_ahead.h"

#include <algorithm>
#include <cstring>

#include "core/jpeg/ahead/huffman_scan.h"

namespace headrace {

bool RowsAhead::begin(LaneScan* scan, int first_column, int last_column, int columns) {
  scan_ = scan;
  skipped_ = first_column;
  wanted_ = last_column - first_column + 1;
  to_edge_ = last_column == columns - 1;
  return most_rows() > 0;
}

void RowsAhead::clear() {
  if (dirty_ != 0) std::memset(scan_->memory(dirty_), 0, dirty_ * sizeof(int16_t));
  dirty_ = 0;
  left_ = 0;
  if (scan_ != nullptr) scan_->forget_bytes();
  rows_.clear();
}

int RowsAhead::most_rows() const {
  const size_t row = static_cast<size_t>(scan_->blocks) * static_cast<size_t>(wanted_ * 64 + skipped_) + kLaneSlack;
  const size_t lanes = scan_->lanes->lanes;
  if (row * lanes > kMostLaneMemory) return 0;
  return static_cast<int>(std::max(kBestLaneMemory / row / lanes, size_t{1}) * lanes);
}

bool RowsAhead::add(const ScanBytes& bytes, const EntryPoint& first, bool last_byte) {
  // Rows of a list that is wrong may overlap.
  if (scan_->used_bytes() + bytes.size() > scan_->most_bytes + 4 * (rows_.size() + 1)) return false;
  Row row{scan_->add_bytes(bytes), bytes.size(), first.bit % 8, {}, last_byte};
  std::copy(first.dc.begin(), first.dc.end(), row.dc);
  rows_.push_back(row);
  return true;
}

bool RowsAhead::decode() {
  const bool fine = !rows_.empty() && fill();
  if (!fine) clear();
  return fine;
}

bool RowsAhead::fill() {
  // The memory: all wanted blocks, the DC differences of the skipped ones, the waste.
  const size_t blocks = static_cast<size_t>(scan_->blocks);
  const size_t wanted = static_cast<size_t>(wanted_) * blocks, skipped = static_cast<size_t>(skipped_) * blocks;
  const size_t row_differences = skipped + kLaneSlack, blocks_end = rows_.size() * wanted * 64;
  const size_t waste = blocks_end + rows_.size() * row_differences, all = waste + kLaneSlack;
  int16_t* const memory = scan_->memory(all);
  jobs_.clear();
  size_t longest = 0, total = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    LaneRow job;
    job.bit = static_cast<uint32_t>(8 * row.first_byte + row.bit);
    job.end = static_cast<uint32_t>(8 * (row.first_byte + row.bytes));
    job.least_end = row.last_byte && to_edge_ && row.bytes != 0 ? job.end - 7 : 0;
    job.skipped = static_cast<int>(skipped);
    job.wanted = static_cast<int>(wanted);
    job.differences = static_cast<uint32_t>(blocks_end + i * row_differences);
    job.blocks = static_cast<uint32_t>(i * wanted * 64);
    jobs_.push_back(job);
    if (i != 0 && i + 1 == rows_.size()) break;  // its end may not be known
    longest = std::max(longest, row.bytes);
    total += row.bytes;
  }
  if (total < (scan_->lanes->least - 1) * std::max(longest, total / scan_->lanes->lanes)) return false;
  std::stable_sort(jobs_.begin(), jobs_.end(),
                   [](const LaneRow& a, const LaneRow& b) { return a.end - a.bit > b.end - b.bit; });
  dirty_ = all;
  if (!scan_->lanes->decode({scan_->input(memory, waste), jobs_})) return false;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const int16_t* difference = memory + blocks_end + i * row_differences;
    for (int mcu = 0; mcu < skipped_; ++mcu)
      for (size_t b = 0; b < blocks; ++b) rows_[i].dc[scan_->component[b]] += *difference++;
  }
  std::memset(memory + blocks_end, 0, (all - blocks_end) * sizeof(int16_t));
  left_ = static_cast<int>(rows_.size()) * wanted_;
  column_ = 0;
  row_ = 0;
  next_ = memory;
  return true;
}

bool RowsAhead::take(int16_t (*const* blocks)[64]) {
  if (column_ == 0) std::copy(std::begin(rows_[row_].dc), std::end(rows_[row_].dc), dc_);
  scan_->take_mcu(next_, dc_, blocks);
  next_ += static_cast<ptrdiff_t>(scan_->blocks) * 64;
  if (--left_ == 0) dirty_ = 0;
  if (++column_ < wanted_) return true;
  column_ = 0;
  ++row_;
  return !to_edge_ || dc_fits(dc_);
}

}  // namespace headrace
