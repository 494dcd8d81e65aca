// Pieces of a scan that are decoded side by side, although it is not known where their blocks begin.
//
// Note [pieces]: a decoder of Huffman codes that begins anywhere soon reads what one that began at the beginning reads
// there: after 6 blocks in the mean of 160 ImageNet files (4:4:4: 4, 4:2:0: 23) it is at the same bit, at the same
// coefficient of the same block of an MCU. From there on both are the same. So a lane begins each piece as if an MCU
// began there, and the lane of the piece before it goes on, MCU by MCU, until the other lane was at the bit where it is
// then, before an MCU, too. What that lane had decoded until then is dropped. The first piece begins where an MCU does;
// so what is left is what one decoder would have read, whatever the data are.
//
// What lanes read before they agree may be no codes at all. An error of a lane is noted with its time, and counts if it
// is later than the place where the lane's blocks are taken from: there the MCUs that can be used end. Coefficients go
// to chunks of memory, which a lane takes one after the other. Each lane's state is logged now and then: where it was
// between these times is found by decoding again from the entry before.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/base/aligned_array.h"
#include "core/jpeg/huffman/row_lanes.h"

namespace headrace {

inline constexpr unsigned kMostLanes = 16;

/// The lanes at one time. Entries of lanes that have ended are unspecified.
struct alignas(kCacheLine) LaneLogEntry {
  std::array<uint32_t, kMostLanes> bit, done, place;  // blocks; the coefficient | the block of the MCU << 8
};

/// A place in a piece. Times are numbers of the piece's entries in the log; 0 is its begin, before the first of them.
struct Junction {
  uint32_t bit = 0;   // before an MCU
  uint32_t mcu = 0;   // that one
  uint32_t time = 0;  // the last one before it
};

struct Piece {
  uint32_t begin = 0, end = 0;  // bits
  int after = -1;               // the piece that begins where this one ends; -1: none
  // Made by a lane:
  unsigned lane = 0;
  uint32_t first_entry = 0, entries = 0;  // of the log
  std::vector<uint32_t> chunks;           // in which its blocks are, one after the other
  std::vector<uint32_t> wrong;            // times before which there were errors
  uint32_t mcus = 0;                      // up to where another piece goes on
  int next = -1;                          // that piece; -1: none
  Junction junction;                      // where it goes on
  Junction from;                          // where this one goes on for another; its begin, if for none
  uint32_t written = 0, cleaned = 0;      // MCUs whose memory may not be zero, and of these, is again
};

struct PieceJob : LaneInput {
  int blocks = 0;  // in an MCU
  // In the order in which lanes begin them. The first `used_pieces` are in use: at first one for each lane; a lane that
  // has ended takes the second half of what the slowest lane has before it, while there are any left.
  std::vector<Piece> pieces;
  unsigned used_pieces = 0;
  uint32_t least_half = 0;  // bits
  std::vector<LaneLogEntry> log;
  uint32_t chunk_mcus = 0, chunks = 0;  // in a chunk; in the memory, from its beginning on
  uint32_t used_chunks = 0;

  /// Begins to use another piece.
  int add_piece(uint32_t begin, uint32_t end, int after);
};

/// The state of a lane between two symbols.
struct LaneCursor {
  uint32_t bit = 0, k = 0, state = 0;  // the next coefficient in zigzag order; see lane_state()
  uint32_t done = 0;                   // blocks

  bool begins_mcu() const { return k == 0 && state % kLaneStates == 0; }
};

struct LaneSymbol {
  bool fine = false;  // else there is no such code, or it does not fit
  bool ends_block = false;
  int place = -1;  // of its coefficient in natural order; -1: it has none
  int16_t value = 0;
};

/// Reads the next symbol, and moves after it.
LaneSymbol read_symbol(const LaneInput& input, LaneCursor* at);

/// The lane of a piece, as it was at a time.
LaneCursor cursor_at(const PieceJob& job, const Piece& piece, uint32_t time);
/// Where the lane of a piece, which has decoded further than `bit`, was there before an MCU; nothing if it was not, or
/// there was an error about then.
std::optional<Junction> find_junction(const PieceJob& job, const Piece& piece, uint32_t bit);
/// The lane of a piece before one of its MCUs, not before `from`; it has decoded at least as far, without an error.
LaneCursor before_mcu(const PieceJob& job, const Piece& piece, uint32_t mcu);

}  // namespace headrace
