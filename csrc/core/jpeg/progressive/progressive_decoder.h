// The coefficients of a progressive JPEG, some rows of MCUs at a time: all its scans are read in parallel, row by row.
// See docs/decisions/0042-scans-side-by-side.md.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/jpeg/progressive/coefficient_strip.h"
#include "core/jpeg/progressive/scan_list.h"
#include "core/jpeg/progressive/scan_loops.h"
#include "core/jpeg/progressive/scan_reader.h"
#include "core/jpeg/sequential/jpeg_header.h"

namespace headrace {

/// Rows and columns of MCUs.
struct McuWindow {
  int first_row = 0, last_row = 0, first_column = 0, last_column = 0;
};

class ProgressiveDecoder {
 public:
  explicit ProgressiveDecoder(const ScanLoops& loops = scan_loops()) : loops_(loops) {}

  /// Prepares for a file whose header is plain and progressive; the bytes must outlive the calls of read(). False: this
  /// class does not read files of its kind. Throws std::bad_alloc.
  bool begin(std::span<const uint8_t> data, const JpegHeader& header, const McuWindow& window);
  /// Makes the coefficients of a row of MCUs in the window. Rows ascend. False: damaged or irregular data; the file
  /// cannot be continued.
  bool read(int row);
  /// After the last row: checks for what libjpeg might refuse in the rest of the file. Returns false as read() does.
  bool finish();
  /// After read(row): the coefficients of line `y` of that row's blocks: of the window's columns, side by side, 64 per
  /// block, in natural order; aligned, in whole groups as BlockLoops::invert reads them.
  const int16_t* line(int component, int row, int y);

 private:
  bool read_strip(int first, int end);

  const ScanLoops& loops_;
  std::vector<ProgressiveScan> scans_;
  std::deque<ScanReader> readers_;  // one per scan; more from earlier files are kept for their memory
  std::array<BlockGrid, 3> grids_;
  std::array<StripLines, 3> lines_;
  McuWindow window_;
  int components_ = 0, mcu_rows_ = 0;
  int strip_rows_ = 0;  // at most, in a strip
  int next_row_ = 0;    // the row after the strip
};

}  // namespace headrace
