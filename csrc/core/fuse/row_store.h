// Writes finished rows into the output: gray, mirrored or upside down on request, each byte through its table; then the
// erased boxes.
#pragma once

#include <optional>
#include <span>

#include "core/base/geometry.h"
#include "core/base/row_buffer.h"
#include "core/fuse/sinks/output.h"
#include "core/kernels/resize/normalisation.h"
#include "core/plan/plan.h"

namespace headrace {

class RowStore final : public RowSink {
 public:
  explicit RowStore(const Kernels& kernels) : kernels_(kernels) {}
  /// Begins a sample of rows [skip_rows, skip_rows + size.height) of those pushed, starting at column `skip_pixels`.
  /// Applies the flips and the gray of `last`; nullptr: none. Rows are RGBX or, with neither gray nor pixels to skip,
  /// planes (kernels.h). Writes the boxes of `erased` after the last row.
  void begin(const Output& output, Size size, const Take* last, int skip_pixels, int skip_rows, int plane_stride,
             std::span<const Erased> erased);
  void push(const uint8_t* rows, size_t stride, int count) override;

 private:
  void erase(const Erased& erased) const;
  template <size_t kBytes>
  void erase_elements(const Erased& erased) const;
  void copy_pixels(const uint8_t* from, uint8_t* to) const;

  const Kernels& kernels_;
  const Output* output_ = nullptr;
  Lut lut_{.element_bytes = 0};                // the table of planes_; none yet
  alignas(64) uint8_t entries_[kMaxLutBytes];  // the source of planes_, kept since most samples have the same
  alignas(64) uint8_t planes_[kMaxLutBytes];
  std::optional<Normalisation> normalisation_;  // of entries_
  Size size_;
  bool mirror_ = false, upside_down_ = false, gray_ = false;
  int skip_pixels_ = 0, plane_stride_ = 0;
  int row_ = 0;  // output row of the next row pushed; negative: skipped
  RowBuffer gray_row_;
  std::span<const Erased> erased_;
};

}  // namespace headrace
