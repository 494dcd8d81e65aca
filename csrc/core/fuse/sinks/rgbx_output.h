// An output of unmapped bytes, four per pixel: an image for further steps.
#pragma once

#include <span>

#include "core/fuse/sinks/output.h"
#include "core/plan/plan.h"

namespace headrace {

/// The table [3][256] that maps each byte to itself.
std::span<const uint8_t> byte_entries();

/// The output that writes a sample of this size to `pixels`: RGBX, rows without gaps.
Output rgbx_output(uint8_t* pixels, Size size);

/// The plan that leaves an image unchanged.
inline Plan as_it_is(Size size) {
  Plan plan;
  plan.last.box = whole_image(size);
  return plan;
}

}  // namespace headrace
