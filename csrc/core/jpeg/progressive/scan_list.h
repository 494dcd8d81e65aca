// The scans of a progressive JPEG: where each is in the file, what it codes, and with which Huffman tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/jpeg/huffman/huffman_table.h"
#include "core/jpeg/sequential/jpeg_header.h"

namespace headrace {

struct ProgressiveScan {
  int components = 0;
  std::array<uint8_t, 3> component{};  // indices in the frame
  int first = 0, last = 0;             // coefficients in zigzag order: 0 and 0, or 1 to 63 (Ss, Se)
  int high = 0, low = 0;               // Ah, Al; high != 0: one more bit of coefficients that an earlier scan began
  int restart_interval = 0;            // MCUs; 0: none
  std::array<HuffmanSpec, 3> dc;       // of each component; unset where the scan reads no DC codes
  HuffmanSpec ac;                      // unset in scans of DC values
  size_t begin = 0, end = 0;           // the entropy-coded bytes, up to the FF of the marker that ends them
};

/// Files with more scans are left to libjpeg. Encoders write about ten.
inline constexpr size_t kMostScans = 64;

/// Replaces *scans by those of `data`, whose header says that it is progressive and plain. False: ProgressiveDecoder
/// does not read scans of this kind. Throws std::bad_alloc.
bool list_scans(std::span<const uint8_t> data, const JpegHeader& header, std::vector<ProgressiveScan>* scans);

}  // namespace headrace
