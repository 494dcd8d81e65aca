// One scan of a progressive JPEG, read row by row.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/jpeg/progressive/coefficient_strip.h"
#include "core/jpeg/progressive/scan_list.h"
#include "core/jpeg/progressive/scan_loops.h"
#include "core/jpeg/scan/scan_bytes.h"

namespace headrace {

class ScanReader {
 public:
  /// Call before the first MCU of `scan`. `scan` and `data`, the file, must outlive the calls of read().
  /// `refined`: later scans add bits to what this one codes. `mcu_columns`: of the image. Throws std::bad_alloc.
  void begin(const ScanLoops& loops, std::span<const uint8_t> data, const ProgressiveScan& scan, bool refined,
             std::span<const BlockGrid> grids, int mcu_columns);
  /// Reads the blocks of the image's next row of MCUs, which is row `row`. False: damaged or irregular data.
  bool read(int row, std::span<StripLines> lines);
  /// Reads the MCUs from row `row` to the last of `rows` and drops the values, if libjpeg might stop in them.
  bool pass(int row, int rows);

 private:
  bool enter();
  bool read_band(int row, StripLines& lines);
  bool read_values(int row, std::span<StripLines> lines);
  bool read_value(StripLines* lines, size_t member, int column, int line);

  const ScanLoops* loops_ = nullptr;
  const ProgressiveScan* scan_ = nullptr;
  std::span<const BlockGrid> grids_;
  bool refined_ = false, single_ = false;
  int mcu_columns_ = 0;
  int left_ = 0;     // MCUs left in the current segment
  int segment_ = 0;  // the next one
  ScanBytes bytes_;
  ScanPosition position_;
  AcScanTable ac_;
  AcBand band_;
  std::array<DcTable, 3> dc_;
  std::array<int64_t, 3> last_dc_{};
};

}  // namespace headrace
