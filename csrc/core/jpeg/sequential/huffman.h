// Decodes the Huffman codes of a baseline scan, faster than libjpeg-turbo does: wanted blocks completely; of all others
// only the lengths of the codes and the DC values.
//
// Note [Huffman loop]: decoding a crop spends two thirds of its time in this loop, since a JPEG has no index: all codes
// above and beside the crop must be decoded. The loop is fast because stuffing is removed once, so a refill loads 56
// bits without checks; a look-up returns two symbols, or in skipped blocks all that fit; and no step waits for a
// refill, since it is needed only after the next look-up. The loop accepts less than libjpeg does: it returns false for
// any irregularity that it meets, and the image goes to Pillow.
//
// Nothing is decoded before it is needed: MCUs before a wanted one are skipped when that one is requested. A restart
// marker resets all state, so the loop begins at the last marker before the wanted MCU and never reads the segments
// that hold none. In a file with one marker per row of MCUs it enters at the first row of the crop, and leaves each row
// at the crop's last column. Damage in a segment that is not read changes no pixel of another one, for libjpeg either.
// Entry points (entry_points.h) do the same for a scan without markers. Only a row that was reached without an error
// gets one, so every code before a wanted MCU has been read once, by this decode or by an earlier one. Rows with a
// marker or an entry point may be decoded side by side: see Note [row lanes]. So may the rest of a scan: see Note
// [pieces].
#pragma once

#include <memory>

#include "core/jpeg/ahead/huffman_scan.h"
#include "core/jpeg/huffman/row_lanes.h"

namespace headrace {

class HuffmanDecoder {
 public:
  HuffmanDecoder();
  ~HuffmanDecoder();
  /// Prepares for the first MCU of a scan. Keeps no pointers except those to its data and
  /// to its entry points. Throws std::bad_alloc.
  void begin(const HuffmanScan& scan);
  /// Decodes the next MCU into blocks[i], 64 zeroed coefficients each, in natural order; nullptr: it is not needed.
  /// Returns false if the data read for it are damaged or irregular; the scan cannot be continued.
  bool next_mcu(int16_t (*const* blocks)[64]);
  /// Call before the first next_mcu, where all columns of these rows of MCUs that are not outside the scan's will be
  /// wanted, and no other rows: those that begin at known places are decoded many at once, the others in pieces, with
  /// the same results.
  /// Throws std::bad_alloc.
  void decode_ahead(const RowLanes& lanes, int first_row, int last_row);
  /// Call after the last next_mcu, while the scan's data are still valid: stores the entry points that were learned.
  void keep_learned_entries() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// False if HEADRACE_HUFFMAN=library selects libjpeg-turbo's loop, for tests and comparisons. Read once.
bool own_huffman_wanted();

}  // namespace headrace
