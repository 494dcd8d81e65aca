// Converts pixels that are bytes in memory to the RGBX rows that stages pass on.
#include "core/fuse/sinks/raw_rows.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

constexpr int kChunkBytes = 16 << 10;
constexpr int kLine = 64;
// A crop's rows have gaps, and page boundaries fall within its rows: either stops the hardware's own prefetch.
constexpr int kRowsAhead = 8;

// Into L2: the prefetches of a row would fill the buffers of L1 (see kPrefetchBytes).
inline void prefetch(const uint8_t* row, ptrdiff_t bytes) {
  for (ptrdiff_t i = 0; i < bytes; i += kLine) __builtin_prefetch(row + i, 0, 2);
}

// Inlined with constants for the usual strides, so that compilers optimise for them.
inline void expand_row(const uint8_t* from, ptrdiff_t pixel, ptrdiff_t channel, int pixels, uint8_t* to) {
  for (int x = 0; x < pixels; ++x, from += pixel, to += kPixelBytes) {
    const uint8_t rgbx[kPixelBytes] = {from[0], from[channel], from[2 * channel], 0};
    std::memcpy(to, rgbx, kPixelBytes);
  }
}

}  // namespace

void expand(const Kernels& kernels, const RawImage& image, Box box, uint8_t* to, size_t stride) {
  const ptrdiff_t pixel = image.pixel_stride, channel = image.channels == 1 ? 0 : image.channel_stride;
  const uint8_t* from = image.data + box.y * image.row_stride + box.x * pixel;
  for (int y = 0; y < box.height; ++y, from += image.row_stride, to += stride) {
    if (image.channels == kPixelBytes) {
      std::memcpy(to, from, static_cast<size_t>(box.width) * kPixelBytes);
    } else if (pixel == 3 && channel == 1) {
      if (box.y + y + kRowsAhead < image.size.height) prefetch(from + kRowsAhead * image.row_stride, box.width * pixel);
      kernels.rgb_to_rgbx(from, box.width, to);
    } else if (pixel == 1 && channel == 0) {
      expand_row(from, 1, 0, box.width, to);
    } else if (pixel == 1) {
      expand_row(from, 1, channel, box.width, to);
    } else {
      expand_row(from, pixel, channel, box.width, to);
    }
  }
}

void RawRows::push(const RawImage& image, Box box, RowSink& sink) {
  const int row_bytes = box.width * kPixelBytes;
  const int most = std::clamp(kChunkBytes / row_bytes, 1, box.height);
  rows_.reset(most, row_bytes);
  for (int y = 0; y < box.height; y += most) {
    const int count = std::min(most, box.height - y);
    expand(kernels_, image, {box.x, box.y + y, box.width, count}, rows_.row(0), rows_.stride());
    sink.push(rows_.row(0), rows_.stride(), count);
  }
}

}  // namespace headrace
