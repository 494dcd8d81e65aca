// Rows of MCUs that are decoded before they are asked for, many side by side: see Note [row lanes].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/jpeg/ahead/lane_scan.h"
#include "core/jpeg/scan/shared_lists.h"

namespace headrace {

class RowsAhead {
 public:
  /// Prepares for a scan, of which the MCUs from `first_column` to `last_column` of `columns` are wanted. False: rows
  /// are too long.
  bool begin(LaneScan* scan, int first_column, int last_column, int columns);
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

  LaneScan* scan_ = nullptr;
  int skipped_ = 0, wanted_ = 0;  // MCUs of a row
  bool to_edge_ = false;          // the wanted MCUs reach the row's end
  std::vector<Row> rows_;
  std::vector<LaneRow> jobs_;
  size_t dirty_ = 0;  // coefficients that may not be zero
  int left_ = 0, column_ = 0;
  size_t row_ = 0;
  int16_t* next_ = nullptr;
  int dc_[4] = {};
};

}  // namespace headrace
