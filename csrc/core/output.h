// Where a finished sample goes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"

namespace headrace {

/// Where one sample goes and how its bytes are mapped.
struct Output {
  uint8_t* base = nullptr;
  ptrdiff_t channel_stride = 0, row_stride = 0, pixel_stride = 0;  // bytes
  Lut lut;
};

}  // namespace headrace
