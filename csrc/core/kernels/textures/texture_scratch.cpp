// Lays out the memory that the loops expect.
#include "core/kernels/textures/texture_scratch.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

template <class T>
void clear(AlignedArray<T>& array, size_t count) {
  array.resize(count);
  std::memset(array.data(), 0, count * sizeof(T));
}

}  // namespace

TextureScratch::TextureScratch(Size size) {
  const auto [width, height] = size;
  const auto columns = static_cast<size_t>(width), rows = static_cast<size_t>(height);
  const auto padded = static_cast<size_t>(texture_padded(width));
  const auto kept = static_cast<size_t>(texture_padded(height / 2 + 1));
  const int half = (width + 1) / 2;
  view_.luma_stride = texture_padded(half + texture_padded(half));  // the second half is read in whole blocks
  const size_t luma = rows * static_cast<size_t>(view_.luma_stride), spectra = 2 * columns * kept,
               combined = 2 * rows * padded, lanes = std::max(columns, rows) * kTextureLanes;
  clear(pixels_, columns * rows * kPixelBytes + kRowSlack);
  clear(doubles_,
        luma + spectra + combined + 8 * lanes + 4 * lanes + 4 * static_cast<size_t>(texture_padded(width + 2)));
  clear(floats_, 8 * padded + 2 * rows * padded);
  view_.pixels = pixels_.data();
  view_.luma = doubles_.data();
  view_.spectra = view_.luma + luma;
  view_.combined = view_.spectra + spectra;
  view_.lanes = view_.combined + combined;
  view_.butterfly = view_.lanes + 8 * lanes;
  view_.rows = view_.butterfly + 4 * lanes;
  view_.channels = floats_.data();
  view_.bands = view_.channels + 8 * padded;
}

}  // namespace headrace
