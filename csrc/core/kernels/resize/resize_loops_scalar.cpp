// The inner loops in plain C++: the reference, which all other sets must equal byte for byte.
#include <algorithm>
#include <cstring>

#include "core/base/geometry.h"
#include "core/base/pixel_math.h"
#include "core/kernels/resize/kernel_sets.h"

namespace headrace {
namespace {

void rgb_to_rgbx(const uint8_t* rgb, int pixels, uint8_t* rgbx) {
  for (int x = 0; x < pixels; ++x, rgb += 3, rgbx += kPixelBytes) {
    const uint8_t pixel[kPixelBytes] = {rgb[0], rgb[1], rgb[2], 0};
    std::memcpy(rgbx, pixel, kPixelBytes);
  }
}

void resample_x(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                size_t dst_stride, int plane_stride) {
  const size_t pixel = plane_stride ? 1 : kPixelBytes, channel = plane_stride ? size_t(plane_stride) : 1;
  for (int y = 0; y < rows; ++y, src += src_stride, dst += dst_stride) {
    for (int x = 0; x < table.count; ++x) {
      const uint8_t* from = src + ptrdiff_t(table.start[x]) * kPixelBytes;
      const int32_t* weight = &table.weight[size_t(x) * table.taps_stride];
      int32_t r = kWeightHalf, g = kWeightHalf, b = kWeightHalf;
      for (int t = 0; t < table.taps[x]; ++t, from += kPixelBytes) {
        r += from[0] * weight[t];
        g += from[1] * weight[t];
        b += from[2] * weight[t];
      }
      dst[x * pixel] = byte_of_sum(r);
      dst[x * pixel + channel] = byte_of_sum(g);
      dst[x * pixel + 2 * channel] = byte_of_sum(b);
    }
  }
}

void resample_y(const uint8_t* src, size_t src_stride, const TableView& table, int index, int bytes, uint8_t* dst) {
  const int32_t* weight = &table.weight[size_t(index) * table.taps_stride];
  constexpr int kColumns = 64;  // at a time, so that compilers vectorise the inner loops
  for (int x = 0; x < bytes; x += kColumns, src += kColumns, dst += kColumns) {
    const int n = std::min(kColumns, bytes - x);
    int32_t sum[kColumns];
    std::fill_n(sum, kColumns, kWeightHalf);
    for (int t = 0; t < table.taps[index]; ++t) {
      for (int i = 0; i < n; ++i) sum[i] += src[t * src_stride + i] * weight[t];
    }
    for (int i = 0; i < n; ++i) dst[i] = byte_of_sum(sum[i]);
  }
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

const Kernels kScalarKernels{
    "scalar",       false,           rgb_to_rgbx,         resample_x,      resample_y,
    store,          &kScalarEffects, make_texture_scalar, run_warp_scalar, run_tensor_warp_scalar,
    &kScalarMixing, &kScalarFloats,  &kScalarOpencv,      nullptr};

}  // namespace headrace
