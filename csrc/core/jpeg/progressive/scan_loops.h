// The inner loops of progressive scans of AC coefficients: plain, and with the bit instructions of BMI2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/jpeg/progressive/ac_scan_table.h"

namespace headrace {

/// Where a segment of a scan is read.
struct ScanPosition {
  uint64_t bits = 0;  // as Bits in jpeg/huffman_block.h
  const uint8_t* next = nullptr;
  unsigned count = 0;
  uint32_t ended = 0;            // blocks, starting with the next one, whose band is complete
  const uint8_t* end = nullptr;  // of the segment
};

/// Bytes after a segment that a loop may read: the longest block.
inline constexpr size_t kScanPadding = 64 * 4 + 8 + 16;

/// What a scan codes.
struct AcBand {
  const AcScanTable* table = nullptr;
  int first = 1, last = 63;  // in zigzag order
  int low = 0;               // Al
};

/// Each reads `blocks` blocks of one row. `masks`: a bit for each coefficient, in zigzag order, that is not zero.
/// `coefficients`: 64 a block, in natural order; nullptr: they are not needed. False: damaged or irregular data.
struct ScanLoops {
  /// The first scan of a band. Its coefficients and mask bits are zero. `masks`: nullptr if no later scan needs them.
  bool (*first)(ScanPosition* position, const AcBand& band, int blocks, uint64_t* masks, int16_t* coefficients);
  /// One more bit of the coefficients.
  bool (*refine)(ScanPosition* position, const AcBand& band, int blocks, uint64_t* masks, int16_t* coefficients);
};

extern const ScanLoops kPlainScans;
#if defined(__x86_64__) || defined(_M_X64)
extern const ScanLoops kBmi2Scans;
#endif

/// The fastest for this processor; HEADRACE_ISA=scalar selects the plain ones.
const ScanLoops& scan_loops();

}  // namespace headrace
