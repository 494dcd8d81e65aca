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
// marker or an entry point may be decoded side by side: see Note [row lanes].
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/jpeg/huffman/huffman_table.h"
#include "core/jpeg/huffman/row_lanes.h"
#include "core/jpeg/scan/entry_points.h"

namespace headrace {

inline constexpr int kMaxBlocksInMcu = 10;

struct HuffmanScan {
  std::span<const uint8_t> data;  // entropy-coded, as in the file; restart markers in order, none missing
  int blocks = 0;                 // in an MCU
  struct McuBlock {
    uint8_t component = 0, dc_table = 0, ac_table = 0;  // each 0 to 3; `component`: its index in the scan
  };
  McuBlock block[kMaxBlocksInMcu];
  const HuffmanSpec* dc[4] = {};  // null where no block uses it
  const HuffmanSpec* ac[4] = {};
  int mcus_per_row = 0;
  int first_column = 0, last_column = 0;  // MCUs outside these are skipped
  int restart_interval = 0;               // MCUs; 0: none
  EntryPoints* entries = nullptr;         // to use and to learn; null where the scan has restart markers
  uint64_t key = 0;                       // of the file in `entries`
};

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
  /// wanted, and no other rows: those that begin at known places are decoded many at once, with the same results.
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
