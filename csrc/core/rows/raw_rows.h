// Turns pixels that are bytes in memory into the RGBX rows that the stages hand on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/geometry.h"
#include "core/base/row_buffer.h"
#include "core/source/blob.h"

namespace headrace {

/// Writes `box`, which lies inside the image, as RGBX rows `stride` bytes apart. Gray becomes R = G = B.
void expand(const RawImage& image, Box box, uint8_t* to, size_t stride);

/// Pushes images into sinks; one a worker, for the memory of its rows.
class RawRows {
 public:
  /// The rows of `box`, some at a time: they stay in the first-level cache.
  void push(const RawImage& image, Box box, RowSink& sink);

 private:
  RowBuffer rows_;
};

}  // namespace headrace
