// A scan with Huffman codes, as the decoders of it get it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "core/jpeg/huffman/huffman_table.h"
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
  int mcus_per_row = 0, mcu_rows = 0;     // 0: not known, so it is not decoded in pieces
  int first_column = 0, last_column = 0;  // MCUs outside these are skipped
  int restart_interval = 0;               // MCUs; 0: none
  EntryPoints* entries = nullptr;         // to use and to learn; null where the scan has restart markers
  uint64_t key = 0;                       // of the file in `entries`
};

/// Whether no DC value is near the range of int, which libjpeg stops at: asked once a row, which adds less than 2^30.
template <class Values>
bool dc_fits(const Values& dc) {
  constexpr int64_t kLimit = int64_t{1} << 30;
  return std::all_of(std::begin(dc), std::end(dc), [](int64_t v) { return -kLimit < v && v < kLimit; });
}

}  // namespace headrace
