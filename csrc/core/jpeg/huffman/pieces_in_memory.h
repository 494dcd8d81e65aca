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
class PiecesInMemory : protected LaneArrays<kLanes> {
 public:
  static constexpr bool kArePieces = true;

  explicit PiecesInMemory(PieceJob* job) : LaneArrays<kLanes>(*job), job_(*job) {
    static_assert(kLanes <= kMostLanes);
    const unsigned count = job_.used_pieces;
    for (unsigned i = 0; i < kLanes; ++i) {
      rest(i);
      if (i < count) begin_piece(i, static_cast<int>(i));
    }
  }

 protected:
  using LaneArrays<kLanes>::kLeast, LaneArrays<kLanes>::active_, LaneArrays<kLanes>::bit_, LaneArrays<kLanes>::k_;
  using LaneArrays<kLanes>::state_, LaneArrays<kLanes>::block_, LaneArrays<kLanes>::step_, LaneArrays<kLanes>::left_;
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  /// Adds an entry to the log, which the caller fills in. Called before the lanes' next symbols.
  LaneLogEntry& add_to_log() {
    job_.log.emplace_back();
    for (unsigned lanes = active_; lanes != 0; lanes &= lanes - 1)
      ++of(static_cast<unsigned>(std::countr_zero(lanes))).entries;
    return job_.log.back();
  }
  void note_wrong(unsigned lane) {
    const uint32_t now = of(lane).entries + 1;
    std::vector<uint32_t>& wrong = of(lane).wrong;
    if (wrong.empty() || wrong.back() != now) wrong.push_back(now);
  }

  bool end_part(unsigned lane);
  bool single(unsigned lane);
  void pass_end(unsigned lane);

  alignas(kCacheLine) uint32_t end_[kLanes];      // of the piece; kNone: it has been passed
  alignas(kCacheLine) uint32_t granted_[kLanes];  // blocks, up to the end of the part of a chunk

 private:
  Piece& of(unsigned lane) { return job_.pieces[static_cast<unsigned>(piece_[lane])]; }
  uint32_t done(unsigned lane) const { return granted_[lane] - (left_[lane] - kLeast); }
  void rest(unsigned lane);
  void begin_piece(unsigned lane, int piece);
  void take_half(unsigned lane);
  void take_chunk(unsigned lane);
  void arrive(unsigned lane);
  bool has_been_at(const Piece& piece, int number, uint32_t bit, const Junction& junction) const;
  void stop(unsigned lane);

  PieceJob& job_;
  int piece_[kLanes] = {};
  int target_[kLanes] = {};  // the piece that is going to go on
};

template <unsigned kLanes>
void PiecesInMemory<kLanes>::rest(unsigned lane) {
  LaneArrays<kLanes>::rest(lane);
  end_[lane] = kNone;
  granted_[lane] = 0;
}

template <unsigned kLanes>
void PiecesInMemory<kLanes>::stop(unsigned lane) {
  Piece& piece = of(lane);
  const uint32_t blocks = static_cast<uint32_t>(job_.blocks);
  piece.mcus = done(lane) / blocks;
  piece.written = (done(lane) + (k_[lane] != 0) + blocks - 1) / blocks;
  rest(lane);
  take_half(lane);
}

template <unsigned kLanes>
void PiecesInMemory<kLanes>::begin_piece(unsigned lane, int number) {
  Piece& piece = job_.pieces[static_cast<unsigned>(number)];
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
  if (job_.used_pieces == job_.pieces.size() || job_.used_chunks == job_.chunks) return;
  unsigned slowest = lane;
  uint32_t most = 0;
  for (unsigned lanes = active_; lanes != 0; lanes &= lanes - 1) {
    const unsigned other = static_cast<unsigned>(std::countr_zero(lanes));
    if (end_[other] == kNone || end_[other] < bit_[other] || end_[other] - bit_[other] <= most) continue;
    slowest = other;
    most = end_[other] - bit_[other];
  }
  if (most / 2 < job_.least_half) return;
  Piece& piece = of(slowest);
  const uint32_t middle = bit_[slowest] + most / 2;
  piece.after = job_.add_piece(middle, piece.end, piece.after);
  target_[slowest] = piece.after;
  piece.end = end_[slowest] = middle;
  begin_piece(lane, piece.after);
}

template <unsigned kLanes>
void PiecesInMemory<kLanes>::take_chunk(unsigned lane) {
  if (job_.used_chunks == job_.chunks) return stop(lane);
  std::vector<uint32_t>& chunks = of(lane).chunks;
  const uint32_t blocks = job_.chunk_mcus * static_cast<uint32_t>(job_.blocks);
  block_[lane] = job_.used_chunks * blocks * 64;
  chunks.push_back(job_.used_chunks++);
  granted_[lane] = static_cast<uint32_t>(chunks.size()) * blocks;
  left_[lane] = kLeast + blocks;
  if (end_[lane] == kNone) {  // MCU by MCU
    granted_[lane] -= blocks - static_cast<uint32_t>(job_.blocks);
    left_[lane] = kLeast + static_cast<uint32_t>(job_.blocks);
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
  const uint32_t left = static_cast<uint32_t>(job_.blocks) - block;
  granted_[lane] -= left_[lane] - kLeast - left;
  left_[lane] = kLeast + left;
}

/// Whether a piece's lane has reached a place that it will reach, if it goes on: half of what a lane has before it may
/// become another piece, and a lane without memory ends.
template <unsigned kLanes>
bool PiecesInMemory<kLanes>::has_been_at(const Piece& piece, int number, uint32_t bit, const Junction& junction) const {
  const bool goes_on = (active_ >> piece.lane & 1) != 0 && piece_[piece.lane] == number;
  return goes_on ? bit_[piece.lane] >= bit : piece.mcus >= junction.mcu;
}

/// The lane is before an MCU, after the end of its piece.
template <unsigned kLanes>
void PiecesInMemory<kLanes>::arrive(unsigned lane) {
  Piece& piece = of(lane);
  for (; target_[lane] >= 0; target_[lane] = job_.pieces[static_cast<unsigned>(target_[lane])].after) {
    const Piece& target = job_.pieces[static_cast<unsigned>(target_[lane])];
    if (bit_[lane] >= target.end) continue;  // the two have not agreed anywhere
    const std::optional<Junction> junction = find_junction(job_, target, bit_[lane]);
    if (!junction || !has_been_at(target, target_[lane], bit_[lane], *junction)) break;
    piece.next = target_[lane];
    piece.junction = *junction;
    return stop(lane);
  }
  if (target_[lane] < 0) return stop(lane);
  const uint32_t blocks = static_cast<uint32_t>(job_.blocks), in_chunk = job_.chunk_mcus * blocks;
  const uint32_t so_far = done(lane);
  if (so_far == piece.chunks.size() * in_chunk) return take_chunk(lane);
  block_[lane] = (piece.chunks.back() * in_chunk + so_far % in_chunk) * 64;
  granted_[lane] = so_far + blocks;
  left_[lane] = kLeast + blocks;
}

/// Decodes a symbol that is not in the tables, or skips a bit that begins none.
template <unsigned kLanes>
bool PiecesInMemory<kLanes>::single(unsigned lane) {
  if (this->take_symbol(lane).fine) return left_[lane] != kLeast || end_part(lane);
  note_wrong(lane);
  if (++bit_[lane] > 8 * job_.size) stop(lane);  // nothing may follow that ends the MCU
  return true;
}

}  // namespace
}  // namespace headrace
