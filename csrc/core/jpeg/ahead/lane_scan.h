// What lanes need to know of a scan, and the memory in which they decode its blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/aligned_array.h"
#include "core/jpeg/ahead/huffman_scan.h"
#include "core/jpeg/huffman/row_lanes.h"
#include "core/jpeg/scan/scan_bytes.h"

namespace headrace {

// Coefficients of one decode, and the differences beside them: they leave the L2 cache, but a few rows do not fill the
// lanes.
inline constexpr size_t kBestLaneMemory = size_t{1} << 20, kMostLaneMemory = size_t{1} << 21;

class LaneScan {
 public:
  /// Prepares for a scan. False: its tables or its size are not for lanes. Throws std::bad_alloc.
  bool begin(const HuffmanScan& scan, const RowLanes& lanes);
  /// The first `size` coefficients, all of which are zero if users leave zeros. Throws std::bad_alloc.
  int16_t* memory(size_t size);
  /// Adds the bytes of a segment; returns where they begin. Throws std::bad_alloc.
  size_t add_bytes(const ScanBytes& bytes);
  void forget_bytes() { used_bytes_ = 0; }
  size_t used_bytes() const { return used_bytes_; }
  /// Moves an MCU from the memory to blocks[i], with DC values instead of differences; `dc`: those before it.
  void take_mcu(int16_t* from, int* dc, int16_t (*const* blocks)[64]) const;
  /// What lanes read, with all bytes that were added.
  LaneInput input(int16_t* memory, size_t waste);

  const RowLanes* lanes = nullptr;
  uint8_t component[kLaneStates] = {};  // of each block of an MCU
  int blocks = 0;                       // in an MCU
  size_t most_bytes = 0;                // of the scan

 private:
  LaneTables tables_;
  alignas(kCacheLine) uint32_t states_[kLaneStates] = {};
  std::vector<uint8_t> bytes_;  // inverted
  size_t used_bytes_ = 0;
  AlignedArray<int16_t> memory_;
};

}  // namespace headrace
