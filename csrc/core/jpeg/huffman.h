// Decodes the Huffman codes of a baseline scan, faster than libjpeg-turbo does: whole blocks where they are wanted, and
// only their lengths and DC values where they are not.
//
// Note [Huffman loop]: two thirds of decoding a crop is this loop, since the data has no index: all codes above and
// beside the crop must be walked. What makes it fast: the stuffing is taken out of the data once, so that 56 bits are
// refilled without looking at them; a look-up holds two symbols, and in blocks nobody wants, as many as fit; and no
// step waits for the refill, because a refill is only needed after the next look-up.
// It accepts less than libjpeg does: whatever is not plainly right returns false, and the image goes to Pillow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/jpeg/huffman_table.h"

namespace headrace {

inline constexpr int kMaxBlocksInMcu = 10;

struct HuffmanScan {
  std::span<const uint8_t> data;  // entropy-coded, as in the file; restart markers in it, in order and none missing
  int blocks = 0;                 // in an MCU
  struct Block {
    uint8_t component = 0, dc_table = 0, ac_table = 0;  // all 0 to 3; the component's place in the scan
  };
  Block block[kMaxBlocksInMcu];
  const HuffmanSpec* dc[4] = {};  // null where no block uses it
  const HuffmanSpec* ac[4] = {};
  int mcus_per_row = 0;
  int first_column = 0, last_column = 0;  // MCUs outside these are only skipped
  int restart_interval = 0;               // MCUs; 0: none
};

class HuffmanDecoder {
 public:
  HuffmanDecoder();
  ~HuffmanDecoder();
  /// Gets ready for the first MCU of a scan. The scan's pointers are not used afterwards.
  void begin(const HuffmanScan& scan);
  /// The next MCU, into blocks[i] of 64 zeroed coefficients in natural order; nullptr: its pixels are not wanted.
  /// false: damaged, or odd; the decoder is then of no more use for this scan.
  bool next_mcu(int16_t (*const* blocks)[64]);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// HEADRACE_HUFFMAN=library leaves the loop to libjpeg-turbo (for tests and comparisons); read once.
bool own_huffman_wanted();

}  // namespace headrace
