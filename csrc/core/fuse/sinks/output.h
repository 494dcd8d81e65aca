// Where finished samples go.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/geometry.h"
#include "core/kernels/resize/kernels.h"

namespace headrace {

/// Where one sample goes and how its bytes are mapped.
struct Output {
  uint8_t* base = nullptr;
  ptrdiff_t channel_stride = 0, row_stride = 0, pixel_stride = 0;  // bytes
  Lut lut;
  const uint8_t* erased = nullptr;  // [row][lut.channels] elements, for the plan's erased boxes
  bool rgbx = false;                // stores RGBX pixels: nothing is mapped or erased
};

/// The order of a batch's values in memory: (n, C, H, W), or (n, H, W, C).
enum class Layout : uint8_t { kPlanar, kChannelsLast };

/// The memory of one output sample: strides in bytes between neighbours along each axis, and its whole size.
struct OutputStrides {
  int element_bytes = 4, channels = 3;
  ptrdiff_t channel_stride = 0, row_stride = 0, pixel_stride = 0;
  size_t sample_bytes = 0;
  bool channels_last_axis = false;  // the tensor's axes are (n, H, W, C), whatever their order in memory
  int frames = 1;  // samples that follow one another and are stored together, as a clip (C, frames, H, W)

  /// Where the sample at this place of a batch begins, in bytes after the first.
  size_t offset_of(size_t place) const {
    if (frames == 1) return place * sample_bytes;
    const auto clip = static_cast<size_t>(frames);
    return place / clip * clip * sample_bytes + place % clip * (sample_bytes / static_cast<size_t>(channels));
  }
};

inline OutputStrides strides_of(Layout layout, int channels, Size size, int element_bytes) {
  const ptrdiff_t element = element_bytes, pixels = ptrdiff_t{size.width} * size.height;
  const auto bytes = static_cast<size_t>(element * channels * pixels);
  if (layout == Layout::kChannelsLast) {
    return {element_bytes, channels, element, element * channels * size.width, element * channels, bytes};
  }
  return {element_bytes, channels, element * pixels, element * size.width, element, bytes};
}

/// Planar samples whose channels each stand beside those of the other frames of their clip.
inline OutputStrides clip_strides(OutputStrides of_sample, int frames) {
  of_sample.frames = frames;
  of_sample.channel_stride *= frames;
  return of_sample;
}

}  // namespace headrace
