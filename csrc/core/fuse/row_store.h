// Writes finished rows into the output: gray, mirrored and upside down where asked, each byte through its table; then
// the erased boxes.
#pragma once

#include <optional>
#include <span>

#include "core/base/geometry.h"
#include "core/base/row_buffer.h"
#include "core/kernels/normalisation.h"
#include "core/plan/plan.h"
#include "core/rows/output.h"

namespace headrace {

class RowStore final : public RowSink {
 public:
  explicit RowStore(const Kernels& kernels) : kernels_(kernels) {}
  /// Takes rows [skip_rows, skip_rows + size.height) of those pushed, from column `skip_pixels`. Of `last` only the
  /// flips and gray count, and not even these when it is nullptr. Rows are RGBX or, with neither gray nor pixels to
  /// skip, planes (kernels.h). The boxes of `erased` are written after the last row.
  void begin(const Output& output, Size size, const Take* last, int skip_pixels, int skip_rows, int plane_stride,
             std::span<const Erased> erased);
  void push(const uint8_t* rows, size_t stride, int count) override;

 private:
  void erase(const Erased& erased) const;
  void copy_pixels(const uint8_t* from, uint8_t* to) const;

  const Kernels& kernels_;
  const Output* output_ = nullptr;
  Lut lut_{.element_bytes = 0};                // of planes_; none yet
  alignas(64) uint8_t entries_[kMaxLutBytes];  // of which planes_ was made: the same table comes with every sample
  alignas(64) uint8_t planes_[kMaxLutBytes];
  std::optional<Normalisation> normalisation_;  // of entries_
  Size size_;
  bool mirror_ = false, upside_down_ = false, gray_ = false;
  int skip_pixels_ = 0, plane_stride_ = 0;
  int row_ = 0;  // of the output, of the next row pushed; negative: passed over
  RowBuffer gray_row_;
  std::span<const Erased> erased_;
};

}  // namespace headrace
