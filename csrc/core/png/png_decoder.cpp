// Decodes plain PNGs: all rows at once by libdeflate, then row by row by loops of our own.
#include "core/png/png_decoder.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/error.h"
#include "core/png/unfilter.h"

namespace headrace {
namespace {

[[noreturn]] void leave_to_pillow(const char* reason) { throw NeedsPillow(Stage::kDecode, reason); }

}  // namespace

void PngDecoder::Free::operator()(libdeflate_decompressor* one) const { libdeflate_free_decompressor(one); }

PngDecoder::PngDecoder() : inflater_(libdeflate_alloc_decompressor()) {
  if (inflater_ == nullptr) throw std::bad_alloc();
}

PngDecoder::~PngDecoder() = default;

void PngDecoder::inflate(const PngHeader& header) {
  std::span<const uint8_t> data = header.data.front();
  if (header.data.size() > 1) {
    joined_.clear();
    for (const auto& part : header.data) joined_.insert(joined_.end(), part.begin(), part.end());
    data = joined_;
  }
  const size_t row = header.row_bytes() + 1, all = row * static_cast<size_t>(header.size.height);
  rows_.resize(all + kRowSlack);
  size_t read = 0, made = 0;
  const libdeflate_result result =
      libdeflate_zlib_decompress_ex(inflater_.get(), data.data(), data.size(), rows_.data(), all, &read, &made);
  if (result != LIBDEFLATE_SUCCESS || made != all || read != data.size()) leave_to_pillow("PNG with damaged data");
  if (!unfilter_rows(rows_.data(), row - 1, header.size.height, header.filter_bytes())) {
    leave_to_pillow("PNG with an unknown filter");
  }
}

void PngDecoder::unpack(const PngHeader& header) {
  const int width = header.size.width, depth = header.depth, in_byte = 8 / depth, most = (1 << depth) - 1;
  const int scale = header.colour == PngColour::kGray ? 255 / most : 1;
  const size_t row = header.row_bytes() + 1, height = static_cast<size_t>(header.size.height);
  samples_.resize(static_cast<size_t>(width) * height + kRowSlack);
  uint8_t* to = samples_.data();
  for (size_t y = 0; y < height; ++y, to += width) {
    const uint8_t* from = rows_.data() + y * row + 1;
    for (int x = 0; x < width; ++x) {  // the highest bits first
      const int value = from[x / in_byte] >> (8 - depth - x % in_byte * depth) & most;
      to[x] = static_cast<uint8_t>(value * scale);
    }
  }
}

RawImage PngDecoder::decode(const PngHeader& header, PngWanted wanted) {
  const bool palette = header.colour == PngColour::kPalette;
  const bool levels = header.colour == PngColour::kGray && header.depth > 1 && header.depth < 16;  // Pillow's mode L
  if (wanted == PngWanted::kIndices && !palette && !levels) leave_to_pillow("palette indices are wanted");
  if (wanted == PngWanted::kRgb && palette && header.transparency) {
    leave_to_pillow("PNG whose palette has transparency");
  }
  inflate(header);
  const Size size = header.size;
  const auto row = static_cast<ptrdiff_t>(header.row_bytes()) + 1;
  uint8_t* const first = rows_.data() + 1;
  RawImage image{first, size, header.channels() < 3 ? 1 : header.channels(), row, header.filter_bytes(), 1};
  if (header.depth < 8) {
    unpack(header);
    image = gray_image(samples_.data(), size);
  }
  if (palette && wanted == PngWanted::kRgb) return colour(header, image);
  if (header.depth < 16) return image;
  image.channel_stride = 2;
  if (header.colour == PngColour::kRgba) image.channels = 3;  // alpha is dropped, and bytes are not adjacent
  if (header.colour == PngColour::kGray) clip(header);
  return image;
}

RawImage PngDecoder::colour(const PngHeader& header, const RawImage& indices) {
  const Size size = header.size;
  const size_t entries = header.palette.size() / 3;
  std::array<std::array<uint8_t, kPixelBytes>, 256> table{};
  for (size_t i = 0; i < entries; ++i) std::copy_n(header.palette.data() + 3 * i, 3, table[i].begin());
  coloured_.resize(static_cast<size_t>(size.width) * static_cast<size_t>(size.height) * kPixelBytes);
  uint8_t* to = coloured_.data();
  uint8_t largest = 0;
  for (int y = 0; y < size.height; ++y) {
    const uint8_t* from = indices.data + y * indices.row_stride;
    for (int x = 0; x < size.width; ++x, to += kPixelBytes) {
      largest = std::max(largest, from[x]);
      std::memcpy(to, table[from[x]].data(), kPixelBytes);
    }
  }
  if (largest >= entries) leave_to_pillow("PNG with an index beyond its palette");
  return rgbx_image(coloured_.data(), size);
}

void PngDecoder::clip(const PngHeader& header) {
  const size_t row = header.row_bytes() + 1;
  for (size_t y = 0; y < static_cast<size_t>(header.size.height); ++y) {
    uint8_t* at = rows_.data() + y * row + 1;
    for (size_t x = 0; x < row - 1; x += 2) {
      at[x] = at[x] == 0 ? at[x + 1] : uint8_t{255};
    }
  }
}

int png_pixel_bytes(const PngHeader& header) {
  if (header.depth < 16) return header.channels();
  return header.colour == PngColour::kGrayAlpha ? kPixelBytes
         : header.colour == PngColour::kGray    ? 2
                                                : header.channels();
}

void PngDecoder::write_whole_samples(const PngHeader& header, uint8_t* out) {
  if (header.depth < 16) {
    write_samples(header, out);
    return;
  }
  inflate(header);
  const size_t row = header.row_bytes();
  for (size_t y = 0; y < static_cast<size_t>(header.size.height); ++y, out += row) {
    const uint8_t* from = rows_.data() + y * (row + 1) + 1;
    for (size_t i = 0; i < row; i += 2) {
      out[i] = from[i + 1];
      out[i + 1] = from[i];
    }
  }
}

void PngDecoder::write_samples(const PngHeader& header, uint8_t* out) {
  if (header.depth == 16 && header.colour == PngColour::kGray) {
    write_whole_samples(header, out);
    return;
  }
  inflate(header);
  const auto width = static_cast<size_t>(header.size.width), height = static_cast<size_t>(header.size.height);
  const size_t row = header.row_bytes() + 1, out_row = width * static_cast<size_t>(png_pixel_bytes(header));
  if (header.depth < 8) {
    unpack(header);
    std::memcpy(out, samples_.data(), width * height);
    return;
  }
  for (size_t y = 0; y < height; ++y, out += out_row) {
    const uint8_t* from = rows_.data() + y * row + 1;
    if (header.depth == 8) {
      std::memcpy(out, from, row - 1);
    } else if (header.colour == PngColour::kGrayAlpha) {
      for (size_t x = 0; x < width; ++x) {
        const uint8_t gray = from[4 * x];
        const std::array<uint8_t, kPixelBytes> pixel = {gray, gray, gray, from[4 * x + 2]};
        std::memcpy(out + kPixelBytes * x, pixel.data(), kPixelBytes);
      }
    } else {
      for (size_t i = 0; i < out_row; ++i) out[i] = from[2 * i];
    }
  }
}

}  // namespace headrace
