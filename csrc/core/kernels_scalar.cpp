// The inner loops in plain C++: the ones to read, and what every other instruction set must equal byte for byte.
#include <algorithm>
#include <cstring>

#include "geometry.h"
#include "kernel_sets.h"

namespace headrace {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

/// The weighted sum of `taps` bytes that lie `step` apart.
uint8_t weigh(const uint8_t* src, size_t step, const int32_t* weight, int taps) {
  int32_t sum = kHalf;
  for (int t = 0; t < taps; ++t) sum += src[t * step] * weight[t];
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

void resample_x(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                size_t dst_stride, int plane_stride) {
  const size_t pixel = plane_stride ? 1 : kPixelBytes, channel = plane_stride ? size_t(plane_stride) : 1;
  for (int y = 0; y < rows; ++y, src += src_stride, dst += dst_stride) {
    for (int x = 0; x < table.count; ++x) {
      const uint8_t* from = src + ptrdiff_t(table.start[x]) * kPixelBytes;
      const int32_t* weight = &table.weight[size_t(x) * table.taps_stride];
      for (size_t c = 0; c < 3; ++c) {
        dst[x * pixel + c * channel] = weigh(from + c, kPixelBytes, weight, table.taps[x]);
      }
    }
  }
}

void resample_y(const uint8_t* src, size_t src_stride, const TableView& table, int index, int bytes, uint8_t* dst) {
  const int32_t* weight = &table.weight[size_t(index) * table.taps_stride];
  for (int i = 0; i < bytes; ++i) dst[i] = weigh(src + i, src_stride, weight, table.taps[index]);
}

template <class Element>
void store_as(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut, const RowTarget& target) {
  const ptrdiff_t pixel = plane_stride ? 1 : kPixelBytes, channel = plane_stride ? plane_stride : 1;
  for (int c = 0; c < lut.channels; ++c) {
    const auto* entries = static_cast<const Element*>(lut.entries) + c * 256;
    uint8_t* to = target.base + c * target.channel_stride;
    for (int x = 0; x < pixels; ++x, to += target.pixel_stride) {
      const ptrdiff_t from = mirror ? pixels - 1 - x : x;
      std::memcpy(to, &entries[row[from * pixel + c * channel]], sizeof(Element));
    }
  }
}

void store(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut, const RowTarget& target) {
  if (lut.element_bytes == 4) {
    store_as<uint32_t>(row, plane_stride, pixels, mirror, lut, target);
  } else if (lut.element_bytes == 2) {
    store_as<uint16_t>(row, plane_stride, pixels, mirror, lut, target);
  } else {
    store_as<uint8_t>(row, plane_stride, pixels, mirror, lut, target);
  }
}

}  // namespace

extern const Kernels kScalarKernels{"scalar", false, resample_x, resample_y, store};

}  // namespace headrace
