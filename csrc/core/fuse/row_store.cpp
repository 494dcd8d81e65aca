// Writes finished rows into the output: gray, mirrored or upside down on request, each byte through its table; then the
// erased boxes.
#include "core/fuse/row_store.h"

#include <cstring>

#include "core/fuse/crop_pad_flip.h"

namespace headrace {

void RowStore::begin(const Output& output, Size size, const Take* last, int skip_pixels, int skip_rows,
                     int plane_stride, std::span<const Erased> erased) {
  output_ = &output;
  size_ = size;
  mirror_ = last && last->flip_horizontal;
  upside_down_ = last && last->flip_vertical;
  gray_ = last && last->gray;
  skip_pixels_ = skip_pixels;
  plane_stride_ = plane_stride;
  row_ = -skip_rows;
  erased_ = erased;
  if (gray_) gray_row_.reset(1, size.width * kPixelBytes);
  if (output.rgbx) return;
  const size_t lut_bytes = size_t(output.lut.channels) * 256 * size_t(output.lut.element_bytes);
  if (lut_.channels != output.lut.channels || lut_.element_bytes != output.lut.element_bytes ||
      std::memcmp(entries_, output.lut.entries, lut_bytes) != 0) {
    std::memcpy(entries_, output.lut.entries, lut_bytes);
    split_lut(output.lut, planes_);
    normalisation_.reset();
    if (lut_bytes == 3 * 256 * sizeof(float)) normalisation_ = find_normalisation(entries_);
  }
  lut_ = output.lut;
  lut_.planes = planes_;
  lut_.normalisation = normalisation_ ? &*normalisation_ : nullptr;
}

void RowStore::push(const uint8_t* rows, size_t stride, int count) {
  rows += ptrdiff_t(skip_pixels_) * kPixelBytes;
  for (; count > 0; --count, ++row_, rows += stride) {
    if (row_ < 0 || row_ >= size_.height) continue;
    const uint8_t* from = rows;
    if (gray_) {
      gray_row(rows, size_.width, gray_row_.row(0));
      from = gray_row_.row(0);
    }
    const ptrdiff_t y = upside_down_ ? size_.height - 1 - row_ : row_;
    if (output_->rgbx) {
      copy_pixels(from, output_->base + y * output_->row_stride);
      continue;
    }
    const RowTarget target{output_->base + y * output_->row_stride, output_->channel_stride, output_->pixel_stride};
    kernels_.store(from, plane_stride_, size_.width, mirror_, lut_, target);
    if (row_ + 1 == size_.height) {
      for (const Erased& one : erased_) erase(one);
    }
  }
}

void RowStore::copy_pixels(const uint8_t* from, uint8_t* to) const {
  if (!mirror_) {
    std::memcpy(to, from, size_t(size_.width) * kPixelBytes);
    return;
  }
  for (int x = 0; x < size_.width; ++x, from += kPixelBytes) {
    std::memcpy(to + ptrdiff_t{size_.width - 1 - x} * kPixelBytes, from, kPixelBytes);
  }
}

void RowStore::erase(const Erased& erased) const {
  if (lut_.element_bytes == 4) return erase_elements<4>(erased);
  if (lut_.element_bytes == 2) return erase_elements<2>(erased);
  erase_elements<1>(erased);
}

template <size_t kBytes>
void RowStore::erase_elements(const Erased& erased) const {
  const size_t channels = size_t(lut_.channels);
  const Box& box = erased.box;
  for (int c = 0; c < lut_.channels; ++c) {
    const auto value = [&](int row) { return output_->erased + (size_t(row) * channels + size_t(c)) * kBytes; };
    for (int y = box.y; y < box.y + box.height; ++y) {
      uint8_t* to = output_->base + c * output_->channel_stride + y * output_->row_stride;
      for (int x = box.x; x < box.x + box.width; ++x) {
        std::memcpy(to + x * output_->pixel_stride, value(erased_row(erased, c, x, y)), kBytes);
      }
    }
  }
}

}  // namespace headrace
