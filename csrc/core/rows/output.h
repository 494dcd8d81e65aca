// Where finished samples go.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/geometry.h"
#include "core/kernels/kernels.h"

namespace headrace {

/// Where one sample goes and how its bytes are mapped.
struct Output {
  uint8_t* base = nullptr;
  ptrdiff_t channel_stride = 0, row_stride = 0, pixel_stride = 0;  // bytes
  Lut lut;
  const uint8_t* erased = nullptr;  // [value][lut.channels] elements, of the plan's erased boxes
  bool rgbx = false;                // pixels as they are between stages: nothing is mapped, and nothing erased
};

/// The memory of one output sample: strides in bytes between neighbours along each axis, and its whole size.
struct OutputLayout {
  int element_bytes = 4, channels = 3;
  ptrdiff_t channel_stride = 0, row_stride = 0, pixel_stride = 0;
  size_t sample_bytes = 0;
};

inline OutputLayout planar(int channels, Size size, int element_bytes) {
  const ptrdiff_t row = ptrdiff_t{element_bytes} * size.width, plane = row * size.height;
  return {element_bytes, channels, plane, row, element_bytes, static_cast<size_t>(plane * channels)};
}

inline OutputLayout channels_last(int channels, Size size, int element_bytes) {
  const ptrdiff_t pixel = ptrdiff_t{element_bytes} * channels, row = pixel * size.width;
  return {element_bytes, channels, element_bytes, row, pixel, static_cast<size_t>(row * size.height)};
}

}  // namespace headrace
