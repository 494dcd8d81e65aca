// The lanes of Note [pieces] in memory, while chunks or pieces end, or single symbols are decoded.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "core/jpeg/huffman/lanes_in_memory.h"
#include "core/jpeg/huffman/piece_job.h"

namespace headrace {
namespace {

template <unsigned kLanes>
class PiecesInMemory {
 public:
  static constexpr bool kArePieces = true;

  explicit PiecesInMemory(PieceJob* job) : job_(*job), pieces_(*job) {
    static_assert(kLanes <= kMostLanes);
    const unsigned count = pieces_.used_pieces;
    for (unsigned i = 0; i < kLanes; ++i) {
      rest(i);
      if (i < count) begin_piece(i, static_cast<int>(i));
    }
  }

 protected:
  static constexpr uint32_t kLeast = (1u << 24) - 1;  // `left_` without a block left
  static constexpr uint32_t kIdle = 1u << 30;         // `left_` of a lane that has ended
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  /// Adds an entry to the log, which the caller fills in. Called before the lanes' next symbols.
  LaneLogEntry& add_to_log() {
    pieces_.log.emplace_back();
    for (unsigned lanes = active_; lanes != 0; lanes &= lanes - 1)
      ++of(static_cast<unsigned>(std::countr_zero(lanes))).entries;
    return pieces_.log.back();
  }
  void note_wrong(unsigned lane) {
    const uint32_t now = of(lane).entries + 1;
    std::vector<uint32_t>& wrong = of(lane).wrong;
    if (wrong.empty() || wrong.back() != now) wrong.push_back(now);
  }

  bool end_part(unsigned lane);
  bool single(unsigned lane);
  void pass_end(unsigned lane);

  const LaneInput& job_;
  unsigned active_ = 0;  // a bit for each lane that has a piece
  // As of LanesInMemory.
  alignas(kCacheLine) uint32_t bit_[kLanes];
  alignas(kCacheLine) uint32_t k_[kLanes];
  alignas(kCacheLine) uint32_t state_[kLanes];
  alignas(kCacheLine) uint32_t block_[kLanes];
  alignas(kCacheLine) uint32_t step_[kLanes];
  alignas(kCacheLine) uint32_t left_[kLanes];     // blocks of the part of a chunk, and kLeast
  alignas(kCacheLine) uint32_t end_[kLanes];      // of the piece; kNone: it has been passed
  alignas(kCacheLine) uint32_t granted_[kLanes];  // blocks, up to the end of the part

 private:
  Piece& of(unsigned lane) { return pieces_.pieces[static_cast<unsigned>(piece_[lane])]; }
  void begin_piece(unsigned lane, int piece);
  void take_half(unsigned lane);
  void rest(unsigned lane);
  void stop(unsigned lane);
  uint32_t done(unsigned lane) const { return granted_[lane] - (left_[lane] - kLeast); }
  void take_chunk(unsigned lane);
  void arrive(unsigned lane);

  PieceJob& pieces_;
  int piece_[kLanes] = {};
  int target_[kLanes] = {};  // the piece that is going to go on
};

/// The lane has ended: it reads zeros, and writes to the waste.
template <unsigned kLanes>
void PiecesInMemory<kLanes>::rest(unsigned lane) {
  active_ &= ~(1u << lane);
  state_[lane] = job_.states[kLaneStates - 1];
  k_[lane] = bit_[lane] = step_[lane] = 0;
  block_[lane] = job_.waste;
  left_[lane] = kIdle;
  end_[lane] = kNone;
  granted_[lane] = 0;
}

template <unsigned kLanes>
void PiecesInMemory<kLanes>::stop(unsigned lane) {
  Piece& piece = of(lane);
  const uint32_t blocks = static_cast<uint32_t>(pieces_.blocks);
  piece.mcus = done(lane) / blocks;
  piece.written = (done(lane) + (k_[lane] != 0) + blocks - 1) / blocks;
  rest(lane);
  take_half(lane);
}

template <unsigned kLanes>
void PiecesInMemory<kLanes>::begin_piece(unsigned lane, int number) {
  Piece& piece = pieces_.pieces[static_cast<unsigned>(number)];
  piece.lane = lane;
  active_ |= 1u << lane;
  piece_[lane] = number;
  target_[lane] = piece.after;
  bit_[lane] = piece.begin;
  end_[lane] = piece.end;
  step_[lane] = 64;
  granted_[lane] = 0;
  left_[lane] = kLeast;
  take_chunk(lane);
}

/// Begins a piece in the middle of what the slowest lane has before it.
template <unsigned kLanes>
void PiecesInMemory<kLanes>::take_half(unsigned lane) {
  if (pieces_.used_pieces == pieces_.pieces.size() || pieces_.used_chunks == pieces_.chunks) return;
  unsigned slowest = lane;
  uint32_t most = 0;
  for (unsigned lanes = active_; lanes != 0; lanes &= lanes - 1) {
    const unsigned other = static_cast<unsigned>(std::countr_zero(lanes));
    if (end_[other] == kNone || end_[other] < bit_[other] || end_[other] - bit_[other] <= most) continue;
    slowest = other;
    most = end_[other] - bit_[other];
  }
  if (most / 2 < pieces_.least_half) return;
  Piece& piece = of(slowest);
  const uint32_t middle = bit_[slowest] + most / 2;
  piece.after = pieces_.add_piece(middle, piece.end, piece.after);
  target_[slowest] = piece.after;
  piece.end = end_[slowest] = middle;
  begin_piece(lane, piece.after);
}

template <unsigned kLanes>
void PiecesInMemory<kLanes>::take_chunk(unsigned lane) {
  if (pieces_.used_chunks == pieces_.chunks) return stop(lane);
  std::vector<uint32_t>& chunks = of(lane).chunks;
  const uint32_t blocks = pieces_.chunk_mcus * static_cast<uint32_t>(pieces_.blocks);
  block_[lane] = pieces_.used_chunks * blocks * 64;
  chunks.push_back(pieces_.used_chunks++);
  granted_[lane] = static_cast<uint32_t>(chunks.size()) * blocks;
  left_[lane] = kLeast + blocks;
  if (end_[lane] == kNone) {  // MCU by MCU
    granted_[lane] -= blocks - static_cast<uint32_t>(pieces_.blocks);
    left_[lane] = kLeast + static_cast<uint32_t>(pieces_.blocks);
  }
}

/// The part of a chunk is full, or the MCU in which the piece ends.
template <unsigned kLanes>
bool PiecesInMemory<kLanes>::end_part(unsigned lane) {
  if (end_[lane] == kNone)
    arrive(lane);
  else
    take_chunk(lane);
  return true;
}

/// The lane is after the end of its piece.
template <unsigned kLanes>
void PiecesInMemory<kLanes>::pass_end(unsigned lane) {
  end_[lane] = kNone;
  const uint32_t block = state_[lane] % kLaneStates;
  if (k_[lane] == 0 && block == 0) return arrive(lane);
  const uint32_t left = static_cast<uint32_t>(pieces_.blocks) - block;
  granted_[lane] -= left_[lane] - kLeast - left;
  left_[lane] = kLeast + left;
}

/// The lane is before an MCU, after the end of its piece.
template <unsigned kLanes>
void PiecesInMemory<kLanes>::arrive(unsigned lane) {
  Piece& piece = of(lane);
  for (; target_[lane] >= 0; target_[lane] = pieces_.pieces[static_cast<unsigned>(target_[lane])].after) {
    const Piece& target = pieces_.pieces[static_cast<unsigned>(target_[lane])];
    if (bit_[lane] >= target.end) continue;  // the two have not agreed anywhere
    // Not where the other lane has not been yet: half of what it has before it may become another piece.
    const bool works_on_it = (active_ >> target.lane & 1) != 0 && piece_[target.lane] == target_[lane];
    if (works_on_it && bit_[target.lane] < bit_[lane]) break;
    const std::optional<Junction> junction = find_junction(pieces_, target, bit_[lane]);
    if (!junction) break;
    piece.next = target_[lane];
    piece.junction = *junction;
    return stop(lane);
  }
  if (target_[lane] < 0) return stop(lane);
  const uint32_t blocks = static_cast<uint32_t>(pieces_.blocks), in_chunk = pieces_.chunk_mcus * blocks;
  const uint32_t so_far = done(lane);
  if (so_far == piece.chunks.size() * in_chunk) return take_chunk(lane);
  block_[lane] = (piece.chunks.back() * in_chunk + so_far % in_chunk) * 64;
  granted_[lane] = so_far + blocks;
  left_[lane] = kLeast + blocks;
}

/// Decodes a symbol that is not in the tables, or skips a bit that begins none.
template <unsigned kLanes>
bool PiecesInMemory<kLanes>::single(unsigned lane) {
  LaneCursor at{bit_[lane], k_[lane], state_[lane]};
  const LaneSymbol found = read_symbol(job_, &at);
  if (!found.fine) {
    note_wrong(lane);
    if (++bit_[lane] > 8 * job_.size) stop(lane);  // nothing may follow that ends the MCU
    return true;
  }
  if (found.place >= 0) job_.memory[block_[lane] + static_cast<uint32_t>(found.place)] = found.value;
  bit_[lane] = at.bit;
  k_[lane] = at.k;
  state_[lane] = at.state;
  if (!found.ends_block) return true;
  block_[lane] += step_[lane];
  return --left_[lane] != kLeast || end_part(lane);
}

}  // namespace
}  // namespace headrace
