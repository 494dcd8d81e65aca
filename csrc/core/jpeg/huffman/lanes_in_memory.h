// The lanes of Note [row lanes] in memory, while rows begin or end, or single symbols are decoded.
#pragma once

#include <algorithm>

#include "core/jpeg/huffman/huffman_block.h"
#include "core/jpeg/huffman/piece_job.h"
#include "core/jpeg/huffman/row_lanes.h"

namespace headrace {
namespace {

constexpr uint8_t kWrong = 128;  // in kPlaces: past the end of the block

/// Where a value goes in its block, by the position after it in zigzag order. An end of block writes a zero to the last
/// coefficient, which no other symbol of the block has written then.
constexpr auto kPlaces = [] {
  std::array<uint8_t, 128> places{};
  for (unsigned i = 0; i < places.size(); ++i)
    places[i] = static_cast<uint8_t>(i == 0 || i >= 80 ? 63 : i <= 64 ? kNaturalOrder[i - 1] : kWrong | 63);
  return places;
}();

/// What all kinds of lanes have. A lane that has nothing to do reads zeros, and writes to the waste.
template <unsigned kLanes>
class LaneArrays {
 protected:
  static constexpr uint32_t kLeast = (1u << 24) - 1;  // `left_` without a block left
  static constexpr uint32_t kIdle = 1u << 30;         // `left_` of a lane that has nothing to do

  explicit LaneArrays(const LaneInput& input) : input_(input) {}
  void rest(unsigned lane);
  LaneSymbol take_symbol(unsigned lane);

  const LaneInput& input_;
  unsigned active_ = 0;  // a bit for each lane that has something to do
  alignas(kCacheLine) uint32_t bit_[kLanes];
  alignas(kCacheLine) uint32_t k_[kLanes];      // the next coefficient, in zigzag order
  alignas(kCacheLine) uint32_t state_[kLanes];  // see lane_state()
  alignas(kCacheLine) uint32_t block_[kLanes];  // where it is
  alignas(kCacheLine) uint32_t step_[kLanes];   // from it to the next one
  alignas(kCacheLine) uint32_t left_[kLanes];   // blocks of the part that the lane is in, and kLeast
};

template <unsigned kLanes>
void LaneArrays<kLanes>::rest(unsigned lane) {
  active_ &= ~(1u << lane);
  state_[lane] = input_.states[kLaneStates - 1];
  k_[lane] = bit_[lane] = step_[lane] = 0;
  block_[lane] = input_.waste;
  left_[lane] = kIdle;
}

/// Decodes a symbol that is not in the tables.
template <unsigned kLanes>
LaneSymbol LaneArrays<kLanes>::take_symbol(unsigned lane) {
  LaneCursor at{bit_[lane], k_[lane], state_[lane]};
  const LaneSymbol found = read_symbol(input_, &at);
  if (!found.fine) return found;
  if (found.place >= 0) input_.memory[block_[lane] + static_cast<uint32_t>(found.place)] = found.value;
  bit_[lane] = at.bit;
  k_[lane] = at.k;
  state_[lane] = at.state;
  if (found.ends_block) {
    block_[lane] += step_[lane];
    --left_[lane];
  }
  return found;
}

template <unsigned kLanes>
class LanesInMemory : protected LaneArrays<kLanes> {
 public:
  static constexpr bool kArePieces = false;

  explicit LanesInMemory(const LaneJob& job) : LaneArrays<kLanes>(job), job_(job) {
    for (unsigned i = 0; i < kLanes; ++i) begin_row(i);
  }

 protected:
  using LaneArrays<kLanes>::kLeast, LaneArrays<kLanes>::active_, LaneArrays<kLanes>::bit_, LaneArrays<kLanes>::k_;
  using LaneArrays<kLanes>::state_, LaneArrays<kLanes>::block_, LaneArrays<kLanes>::step_, LaneArrays<kLanes>::left_;

  bool end_part(unsigned lane);
  bool single(unsigned lane);

 private:
  void begin_row(unsigned lane);
  void begin_wanted(unsigned lane);

  const LaneJob& job_;
  size_t next_ = 0;  // row
  const LaneRow* row_[kLanes];
  bool wanted_[kLanes];  // the lane is among the wanted blocks of its row
};

/// The lane takes the next row, if there is one.
template <unsigned kLanes>
void LanesInMemory<kLanes>::begin_row(unsigned lane) {
  this->rest(lane);
  if (next_ == job_.rows.size()) return;
  const LaneRow& row = job_.rows[next_++];
  active_ |= 1u << lane;
  row_[lane] = &row;
  bit_[lane] = row.bit;
  if (row.skipped == 0) {
    begin_wanted(lane);
    return;
  }
  wanted_[lane] = false;
  left_[lane] = kLeast + static_cast<uint32_t>(row.skipped);
  block_[lane] = row.differences;
  step_[lane] = 1;
}

template <unsigned kLanes>
void LanesInMemory<kLanes>::begin_wanted(unsigned lane) {
  wanted_[lane] = true;
  left_[lane] = kLeast + static_cast<uint32_t>(row_[lane]->wanted);
  block_[lane] = row_[lane]->blocks;
  step_[lane] = 64;
}

/// After the last of the skipped or of the wanted blocks. False: the row ends elsewhere.
template <unsigned kLanes>
bool LanesInMemory<kLanes>::end_part(unsigned lane) {
  const LaneRow& row = *row_[lane];
  if (bit_[lane] > row.end) return false;
  if (wanted_[lane]) {
    if (bit_[lane] < row.least_end) return false;
    begin_row(lane);
  } else {
    begin_wanted(lane);
  }
  return true;
}

/// Decodes a symbol that is not in the tables. False: there is none, or it does not fit.
template <unsigned kLanes>
bool LanesInMemory<kLanes>::single(unsigned lane) {
  return this->take_symbol(lane).fine && (left_[lane] != kLeast || end_part(lane));
}

}  // namespace
}  // namespace headrace
