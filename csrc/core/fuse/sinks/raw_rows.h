// Converts pixels that are bytes in memory to the RGBX rows that stages pass on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/geometry.h"
#include "core/base/row_buffer.h"
#include "core/io/source/blob.h"
#include "core/kernels/resize/kernels.h"

namespace headrace {

/// Writes `box`, which must be inside the image, as RGBX rows `stride` bytes apart. Gray becomes R = G = B.
void expand(const Kernels& kernels, const RawImage& image, Box box, uint8_t* to, size_t stride);

/// Pushes images into sinks. Each worker has one, which reuses the memory of its rows.
class RawRows {
 public:
  /// `kernels` must outlive this.
  explicit RawRows(const Kernels& kernels) : kernels_(kernels) {}
  /// Pushes the rows of `box`, which must be inside the image, in chunks that stay in the L1 cache.
  void push(const RawImage& image, Box box, RowSink& sink);

 private:
  const Kernels& kernels_;
  RowBuffer rows_;
};

}  // namespace headrace
