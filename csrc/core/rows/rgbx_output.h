// An output of bytes as they are, four a pixel: an image for somebody who goes on with it.
#pragma once

#include <span>

#include "core/plan/plan.h"
#include "core/rows/output.h"

namespace headrace {

/// The element table of three channels that leaves bytes as they are.
std::span<const uint8_t> byte_entries();

/// Where a sample of this size goes, RGBX, rows without gaps.
Output rgbx_output(uint8_t* pixels, Size size);

/// The plan that leaves an image as it is.
inline Plan as_it_is(Size size) {
  Plan plan;
  plan.last.box = {0, 0, size.width, size.height};
  return plan;
}

}  // namespace headrace
