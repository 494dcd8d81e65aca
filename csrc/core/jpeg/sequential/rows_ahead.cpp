// Rows of MCUs that are decoded before they are asked for, many side by side: see Note [row lanes].
#include "core/jpeg/sequential/rows_ahead.h"

#include <algorithm>
#include <cstring>

#include "core/jpeg/sequential/huffman.h"

namespace headrace {
namespace {

// Coefficients of one decode, and the differences beside them: they leave the L2 cache, but a few rows do not fill the
// lanes.
constexpr size_t kBestMemory = size_t{1} << 20, kMostMemory = size_t{1} << 21;
constexpr int kDcLimit = 1 << 30;  // see HuffmanDecoder::State::row_fits()

void invert(const uint8_t* from, size_t count, uint8_t* to) {
  constexpr size_t kWord = sizeof(uint64_t);
  size_t i = 0;
  for (uint64_t word; i + kWord <= count; i += kWord) {
    std::memcpy(&word, from + i, kWord);
    word = ~word;
    std::memcpy(to + i, &word, kWord);
  }
  for (; i < count; ++i) to[i] = static_cast<uint8_t>(~from[i]);
}

}  // namespace

bool RowsAhead::begin(const HuffmanScan& scan, const RowLanes& lanes) {
  clear();
  lanes_ = &lanes;
  blocks_ = scan.blocks;
  skipped_ = scan.first_column;
  wanted_ = scan.last_column - scan.first_column + 1;
  to_edge_ = scan.last_column == scan.mcus_per_row - 1;
  most_bytes_ = scan.data.size();
  if (most_bytes_ > kMostLaneBytes / 2) return false;
  // The blocks' tables, of which there may be as many kinds as LaneTables has.
  unsigned kinds = 0, kind[kMaxBlocksInMcu] = {};
  const HuffmanScan::McuBlock* of_kind[LaneTables::kKinds] = {};
  for (int i = 0; i < blocks_; ++i) {
    const HuffmanScan::McuBlock& block = scan.block[i];
    unsigned& found = kind[i];
    while (found < kinds && (of_kind[found]->dc_table != block.dc_table || of_kind[found]->ac_table != block.ac_table))
      ++found;
    if (found == LaneTables::kKinds) return false;
    if (found == kinds) of_kind[kinds++] = &block;
    component_[i] = block.component;
  }
  for (unsigned i = 0; i < kinds; ++i)
    if (!tables_.build(i, *scan.dc[of_kind[i]->dc_table], *scan.ac[of_kind[i]->ac_table])) return false;
  const unsigned count = static_cast<unsigned>(blocks_);
  for (unsigned i = 0; i < count; ++i) states_[i] = lane_state((i + 1) % count, kind[(i + 1) % count]);
  states_[kLaneStates - 1] = lane_state(0, kind[0]);
  return most_rows() > 0;
}

void RowsAhead::clear() {
  if (dirty_ != 0) std::memset(memory_.data(), 0, dirty_ * sizeof(int16_t));
  dirty_ = 0;
  left_ = 0;
  used_bytes_ = 0;
  rows_.clear();
}

int RowsAhead::most_rows() const {
  const size_t row = static_cast<size_t>(blocks_) * static_cast<size_t>(wanted_ * 64 + skipped_) + kLaneSlack;
  const size_t lanes = lanes_->lanes;
  if (row * lanes > kMostMemory) return 0;
  return static_cast<int>(std::max(kBestMemory / row / lanes, size_t{1}) * lanes);
}

bool RowsAhead::add(const ScanBytes& bytes, const EntryPoint& first, bool last_byte) {
  const size_t needed = used_bytes_ + bytes.size();
  // Rows of a list that is wrong may overlap.
  if (needed > most_bytes_ + 4 * (rows_.size() + 1)) return false;
  if (bytes_.size() < needed + kLanePadding) bytes_.resize(std::max(needed, most_bytes_) + kLanePadding);
  invert(bytes.data(), bytes.size(), bytes_.data() + used_bytes_);
  Row row{used_bytes_, bytes.size(), first.bit % 8, {}, last_byte};
  std::copy(first.dc.begin(), first.dc.end(), row.dc);
  rows_.push_back(row);
  used_bytes_ = needed;
  return true;
}

bool RowsAhead::decode() {
  const bool fine = !rows_.empty() && fill();
  if (!fine) clear();
  return fine;
}

bool RowsAhead::fill() {
  // The memory: all wanted blocks, the DC differences of the skipped ones, the waste.
  const size_t wanted = static_cast<size_t>(wanted_) * static_cast<size_t>(blocks_);
  const size_t skipped = static_cast<size_t>(skipped_) * static_cast<size_t>(blocks_);
  const size_t row_differences = skipped + kLaneSlack, blocks_end = rows_.size() * wanted * 64;
  const size_t waste = blocks_end + rows_.size() * row_differences, all = waste + kLaneSlack;
  if (memory_.size() < all) {
    memory_.resize(all);
    std::memset(memory_.data(), 0, all * sizeof(int16_t));
  }
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
  if (total < (lanes_->least - 1) * std::max(longest, total / lanes_->lanes)) return false;
  std::stable_sort(jobs_.begin(), jobs_.end(),
                   [](const LaneRow& a, const LaneRow& b) { return a.end - a.bit > b.end - b.bit; });
  dirty_ = all;
  std::memset(bytes_.data() + used_bytes_, 0, kLanePadding);
  if (!lanes_->decode({&tables_, jobs_, states_, bytes_.data(), static_cast<uint32_t>(used_bytes_), memory_.data(),
                       static_cast<uint32_t>(waste)}))
    return false;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const int16_t* difference = memory_.data() + blocks_end + i * row_differences;
    for (int mcu = 0; mcu < skipped_; ++mcu)
      for (int b = 0; b < blocks_; ++b) rows_[i].dc[component_[b]] += *difference++;
  }
  std::memset(memory_.data() + blocks_end, 0, (all - blocks_end) * sizeof(int16_t));
  left_ = static_cast<int>(rows_.size()) * wanted_;
  column_ = 0;
  row_ = 0;
  next_ = memory_.data();
  return true;
}

bool RowsAhead::take(int16_t (*const* blocks)[64]) {
  if (column_ == 0) std::copy(std::begin(rows_[row_].dc), std::end(rows_[row_].dc), dc_);
  int16_t values[kMaxBlocksInMcu];
  for (int b = 0; b < blocks_; ++b)
    values[b] = static_cast<int16_t>(dc_[component_[b]] += next_[static_cast<ptrdiff_t>(b) * 64]);
  lanes_->move(next_, blocks_, blocks);
  for (int b = 0; b < blocks_; ++b) (*blocks[b])[0] = values[b];
  next_ += static_cast<ptrdiff_t>(blocks_) * 64;
  if (--left_ == 0) dirty_ = 0;
  if (++column_ < wanted_) return true;
  column_ = 0;
  ++row_;
  return !to_edge_ || std::all_of(std::begin(dc_), std::end(dc_), [](int v) { return -kDcLimit < v && v < kDcLimit; });
}

}  // namespace headrace
