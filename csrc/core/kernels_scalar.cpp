// The inner loops in plain C++: the ones to read, and what every other instruction set must equal byte for byte.
#include <algorithm>
#include <cstring>

#include "geometry.h"
#include "kernel_sets.h"

namespace headrace {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

uint8_t rounded(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

/// One output pixel: the weighted sum of `taps` pixels `step` bytes apart.
void weigh(const uint8_t* src, size_t step, const int32_t* weight, int taps, uint8_t* dst) {
  int32_t r = kHalf, g = kHalf, b = kHalf;
  for (int t = 0; t < taps; ++t, src += step) {
    r += src[0] * weight[t];
    g += src[1] * weight[t];
    b += src[2] * weight[t];
  }
  dst[0] = rounded(r);
  dst[1] = rounded(g);
  dst[2] = rounded(b);
  dst[3] = 0;
}

void resample_x(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                size_t dst_stride) {
  for (int y = 0; y < rows; ++y, src += src_stride, dst += dst_stride) {
    for (int x = 0; x < table.count; ++x) {
      weigh(src + ptrdiff_t(table.start[x]) * kPixelBytes, kPixelBytes, &table.weight[size_t(x) * table.taps_stride],
            table.taps[x], dst + ptrdiff_t(x) * kPixelBytes);
    }
  }
}

void resample_y(const uint8_t* src, size_t src_stride, const TableView& table, int index, int pixels, uint8_t* dst) {
  const int32_t* weight = &table.weight[size_t(index) * table.taps_stride];
  for (int x = 0; x < pixels; ++x) {
    weigh(src + ptrdiff_t(x) * kPixelBytes, src_stride, weight, table.taps[index], dst + ptrdiff_t(x) * kPixelBytes);
  }
}

template <class Element>
void store_as(const uint8_t* row, int pixels, bool mirror, const Lut& lut, const RowTarget& target) {
  for (int c = 0; c < lut.channels; ++c) {
    const auto* entries = static_cast<const Element*>(lut.entries) + c * 256;
    uint8_t* to = target.base + c * target.channel_stride;
    for (int x = 0; x < pixels; ++x, to += target.pixel_stride) {
      const int from = mirror ? pixels - 1 - x : x;
      std::memcpy(to, &entries[row[ptrdiff_t(from) * kPixelBytes + c]], sizeof(Element));
    }
  }
}

void store(const uint8_t* row, int pixels, bool mirror, const Lut& lut, const RowTarget& target) {
  if (lut.element_bytes == 4) {
    store_as<uint32_t>(row, pixels, mirror, lut, target);
  } else if (lut.element_bytes == 2) {
    store_as<uint16_t>(row, pixels, mirror, lut, target);
  } else {
    store_as<uint8_t>(row, pixels, mirror, lut, target);
  }
}

}  // namespace

extern const Kernels kScalarKernels{"scalar", resample_x, resample_y, store};

}  // namespace headrace
