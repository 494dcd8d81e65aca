// A scan of which nothing is known, decoded in pieces side by side, before its MCUs are asked for: see Note [pieces].
#pragma once

#include <cstdint>
#include <vector>

#include "core/jpeg/ahead/lane_scan.h"
#include "core/jpeg/huffman/piece_job.h"

namespace headrace {

/// Where MCUs begin, in the bytes of a segment, and the DC values before them.
struct ScanPlace {
  size_t bit = 0;
  int mcu = 0;
  int dc[4] = {};
};

/// About the bits of some MCUs of a segment: `part` of `whole`, which have `bits`.
size_t expected_bits(size_t bits, int part, int whole);

class ScanPieces {
 public:
  /// Whether MCUs of `blocks` blocks that have `bits` in all are worth cutting.
  static bool pays(const RowLanes& lanes, int blocks, size_t bits);
  /// Prepares for MCUs `from.mcu` to `last_mcu` of a segment that has `mcus` in all. False: it ends before the first of
  /// them. `learns`: see rows(). Throws std::bad_alloc.
  bool begin(LaneScan* scan, const ScanBytes& bytes, const ScanPlace& from, int last_mcu, int mcus, int mcus_per_row,
             bool learns);
  void clear();
  bool is_active() const { return scan_ != nullptr; }

  /// Moves an MCU, later than all before, to blocks[i], as HuffmanDecoder::next_mcu. False, and this is cleared, and
  /// the blocks are zero: the reason may be anything. Throws std::bad_alloc.
  bool take(int mcu, int16_t (*const* blocks)[64]);
  /// The beginnings of the rows that follow MCUs up to the last one that was taken.
  const std::vector<ScanPlace>& rows() const { return rows_; }

 private:
  bool decode();
  Piece& piece() { return job_.pieces[static_cast<unsigned>(piece_)]; }
  void link_pieces();
  bool enter_piece(int number, uint32_t mcu);
  bool reach_mcu();
  bool pass(uint32_t count);
  void sum_differences(uint32_t count);
  int16_t* memory_of(const Piece& piece, uint32_t mcu);
  void clean_all();
  void clean_piece(const Piece& piece, uint32_t first, uint32_t end);

  LaneScan* scan_ = nullptr;
  PieceJob job_;
  ScanPlace at_;  // the next MCU to be taken or passed
  bool learns_ = false;
  int last_mcu_ = 0, mcus_ = 0, mcus_per_row_ = 0;
  int piece_ = -1;         // of that MCU; -1: none is decoded
  uint32_t in_piece_ = 0;  // the MCU in it
  size_t bits_ = 0;        // of the segment
  size_t next_bit_ = 0;    // after the MCUs that are decoded
  std::vector<ScanPlace> rows_;
};

}  // namespace headrace
