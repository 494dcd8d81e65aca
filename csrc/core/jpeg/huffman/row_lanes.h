// Rows of MCUs that are decoded side by side, each in a lane of vectors.
//
// Note [row lanes]: the rows of a crop are independent streams where their beginnings are known (entry points, restart
// markers). One lane of 32 bits decodes one row, a symbol at a time, and takes the next row when its own ends. All
// lanes are at different symbols of different blocks: so there is no branch for a symbol, an end of a block or a kind
// of block; what is rare (a code without a slot, the end of a row) is a branch that one test for all lanes takes. A
// symbol's value is stored wherever it belongs, also if there is none: then a zero, where a zero is still right. What
// the lanes do not expect ends the job, and the rows are decoded one by one, with the results of that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/jpeg/huffman/lane_tables.h"

namespace headrace {

struct PieceJob;

/// What lanes read, and where they write.
struct LaneInput {
  const LaneTables* tables = nullptr;
  const uint32_t* states = nullptr;  // of a block, see lane_state(): the state of the next one; the last: the first one
  const uint8_t* bytes = nullptr;    // inverted; readable up to kLanePadding after the last one
  uint32_t size = 0;                 // theirs, at most kMostLaneBytes
  int16_t* memory = nullptr;         // all zero but for what nothing reads; DC coefficients become differences
  uint32_t waste = 0;                // kLaneSlack coefficients that nothing reads
};

/// Offsets are in coefficients, in the memory of the job.
struct LaneRow {
  uint32_t bit = 0;                 // of the job's bytes, where the row begins
  uint32_t least_end = 0, end = 0;  // the last wanted block ends between these
  int skipped = 0, wanted = 0;      // blocks: those before the wanted ones, of which only the DC differences are kept
  uint32_t differences = 0;         // where those go, one after the other; kLaneSlack more are written
  uint32_t blocks = 0;              // where the wanted blocks go, 64 coefficients each, all zero before
};

struct LaneJob : LaneInput {
  std::span<const LaneRow> rows;  // the longest first
};

inline constexpr uint32_t kLaneSlack = 64, kLanePadding = 16, kMostLaneBytes = uint32_t{1} << 27;
inline constexpr unsigned kLaneStates = 16;  // blocks in an MCU, and the state before the first one

/// The state of a lane that is at block `block` of an MCU, whose tables are of kind `kind`.
constexpr uint32_t lane_state(unsigned block, unsigned kind) {
  return block | kind * LaneTables::kSlots | LaneTables::kNoSlot * 0x01010100u;
}

struct RowLanes {
  const char* name;
  unsigned lanes;
  unsigned least;  // lanes that are at work in the mean; with fewer, one row after the other is faster
  /// Decodes the rows. False: damaged or irregular data, or codes that the lanes cannot read; the blocks are
  /// unspecified then.
  bool (*decode)(const LaneJob& job);
  /// Decodes the pieces of a scan.
  void (*decode_pieces)(PieceJob* job);
  /// Moves adjacent blocks to where they are wanted, and leaves zeros.
  void (*move)(int16_t* from, int blocks, int16_t (*const* to)[64]);
};

/// Those of a set of block loops; null: one row after the other is faster on this processor, or there are none.
/// HEADRACE_HUFFMAN=lanes: with however few rows, HEADRACE_HUFFMAN=serial: never, for tests and comparisons. Read once.
const RowLanes* row_lanes_named(const char* set);

#if defined(__x86_64__) || defined(_M_X64)
extern const RowLanes kAvx512RowLanes;
/// Nanoseconds that a gather of 16 words from the cache takes, the fastest of a few.
double gather_ns_avx512();
#endif

}  // namespace headrace
