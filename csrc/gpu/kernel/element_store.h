// The last step of both kernels: maps bytes of pixels to elements of the output.
#pragma once

#include "gpu/kernel/sample_job.h"

namespace headrace {

/// Copies entry `entry` of a table of elements, whatever their type. `element_bytes`: 1, 2 or 4.
HEADRACE_HD inline void store_element(uint8_t* to, const void* table, int entry, int element_bytes) {
  if (element_bytes == 4) {
    *reinterpret_cast<uint32_t*>(to) = static_cast<const uint32_t*>(table)[entry];
  } else if (element_bytes == 2) {
    *reinterpret_cast<uint16_t*>(to) = static_cast<const uint16_t*>(table)[entry];
  } else {
    *to = static_cast<const uint8_t*>(table)[entry];
  }
}

/// Writes the elements at column u and row v of the output: those of the pixel, or of the last erased box that covers
/// the position.
HEADRACE_HD inline void store_pixel(const SampleJob& job, const OutputFormat& format, int u, int v, uint32_t pixel) {
  const Erased* erased = nullptr;
  for (int i = 0; i < job.erased_count; ++i) {
    const Box& box = job.erased[i].box;
    const bool inside = u >= box.x && u < box.x + box.width && v >= box.y && v < box.y + box.height;
    erased = inside ? job.erased + i : erased;
  }
  uint8_t* to = job.output + v * format.row_stride + u * format.pixel_stride;
  for (int c = 0; c < format.channels; ++c, to += format.channel_stride) {
    if (erased == nullptr) {
      store_element(to, format.lut, c * 256 + static_cast<int>(pixel >> 8 * c & 255), format.element_bytes);
    } else {
      const int row = erased_row(*erased, c, u, v);
      store_element(to, format.erased, row * format.channels + c, format.element_bytes);
    }
  }
}

/// store_pixel for samples without erased boxes and elements of a size known at compile time.
template <class Element>
class PlainStore {
 public:
  HEADRACE_HD PlainStore(const SampleJob& job, const OutputFormat& format)
      : output_(job.output),
        lut_(static_cast<const Element*>(format.lut)),
        row_(format.row_stride),
        pixel_(format.pixel_stride),
        channel_(format.channel_stride),
        channels_(format.channels) {}

  HEADRACE_HD void operator()(int u, int v, uint32_t pixel) const {
    uint8_t* to = output_ + v * row_ + u * pixel_;
    *reinterpret_cast<Element*>(to) = lut_[pixel & 255];
    if (channels_ == 1) return;
    *reinterpret_cast<Element*>(to + channel_) = lut_[256 + (pixel >> 8 & 255)];
    *reinterpret_cast<Element*>(to + 2 * channel_) = lut_[512 + (pixel >> 16 & 255)];
  }

 private:
  uint8_t* output_;
  const Element* lut_;
  int64_t row_, pixel_, channel_;
  int32_t channels_;
};

/// Calls visit(store) with the fastest store for the sample: store(u, v, pixel) writes a pixel.
template <class Visit>
HEADRACE_HD void with_store(const SampleJob& job, const OutputFormat& format, Visit visit) {
  if (job.erased_count > 0) {
    visit([&](int u, int v, uint32_t pixel) { store_pixel(job, format, u, v, pixel); });
  } else if (format.element_bytes == 4) {
    visit(PlainStore<uint32_t>(job, format));
  } else if (format.element_bytes == 2) {
    visit(PlainStore<uint16_t>(job, format));
  } else {
    visit(PlainStore<uint8_t>(job, format));
  }
}

}  // namespace headrace
