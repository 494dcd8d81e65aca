// Rows of MCUs that are decoded before they are asked for, many side by side: see Note [row lanes].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/aligned_array.h"
#include "core/jpeg/huffman/lane_tables.h"
#include "core/jpeg/huffman/row_lanes.h"
#include "core/jpeg/scan/scan_bytes.h"
#include "core/jpeg/scan/shared_lists.h"

namespace headrace {

struct HuffmanScan;

class RowsAhead {
 public:
  /// Prepares for a scan. False: its tables or its size are not for lanes. Throws std::bad_alloc.
  bool begin(const HuffmanScan& scan, const RowLanes& lanes);
  /// Forgets all rows.
  void clear();
  /// Rows that fit into the memory of one decode; 0: rows are too long.
  int most_rows() const;
  /// Adds the next row to those that decode() will decode: its bytes are in the current segment, from `first.bit` % 8
  /// on. `last_byte`: a whole row must end in the segment's last byte. False: too many bytes. Throws std::bad_alloc.
  bool add(const ScanBytes& bytes, const EntryPoint& first, bool last_byte);
  /// Decodes the rows that were added. False, and they are forgotten: the reason may be anything. Throws
  /// std::bad_alloc.
  bool decode();

  /// MCUs that were decoded and not taken.
  int left() const { return left_; }
  /// Moves the next wanted MCU to blocks[i], as HuffmanDecoder::next_mcu. False: DC values leave their range.
  bool take(int16_t (*const* blocks)[64]);

 private:
  struct Row {
    size_t first_byte = 0, bytes = 0;
    unsigned bit = 0;  // of the first byte
    int dc[4] = {};    // before the row, then before its wanted MCUs
    bool last_byte = false;
  };
  bool fill();

  const RowLanes* lanes_ = nullptr;
  LaneTables tables_;
  alignas(kCacheLine) uint32_t states_[kLaneStates] = {};
  uint8_t component_[kLaneStates] = {};
  int blocks_ = 0, skipped_ = 0, wanted_ = 0;  // in an MCU; MCUs of a row
  bool to_edge_ = false;                       // the wanted MCUs reach the row's end
  size_t most_bytes_ = 0;
  std::vector<uint8_t> bytes_;  // of all rows, inverted
  size_t used_bytes_ = 0;
  std::vector<Row> rows_;
  std::vector<LaneRow> jobs_;
  AlignedArray<int16_t> memory_;
  size_t dirty_ = 0;  // coefficients that may not be zero
  int left_ = 0, column_ = 0;
  size_t row_ = 0;
  int16_t* next_ = nullptr;
  int dc_[4] = {};
};

}  // namespace headrace
