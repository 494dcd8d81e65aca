// Which chunks of a PNG libpng reads without a message on the standard error stream.
#include "core/png/quiet_chunks.h"

#include <algorithm>
#include <array>

#include "core/png/png_header.h"

namespace headrace {
namespace {

constexpr int kMostTexts = 500;  // libpng keeps 1,000 chunks

/// Whether data are unsigned numbers of 32 bits, the higher byte first.
template <size_t kCount>
bool are_numbers(std::span<const uint8_t> data, const std::array<uint32_t, kCount>& numbers) {
  if (data.size() != 4 * kCount) return false;
  for (size_t i = 0; i < kCount; ++i) {
    for (size_t byte = 0; byte < 4; ++byte) {
      if (data[4 * i + byte] != static_cast<uint8_t>(numbers[i] >> (24 - 8 * byte))) return false;
    }
  }
  return true;
}

/// Whether data are samples of 16 bits, as many as the image has colours, none beyond its depth.
bool are_samples(std::span<const uint8_t> data, const PngHeader& header) {
  const bool colour = header.colour == PngColour::kRgb || header.colour == PngColour::kRgba;
  if (data.size() != (colour ? 6u : 2u)) return false;
  for (size_t i = 0; i < data.size(); i += 2) {
    if ((data[i] << 8 | data[i + 1]) >= 1 << header.depth) return false;
  }
  return true;
}

bool is_time(std::span<const uint8_t> data) {
  return data.size() == 7 && data[2] >= 1 && data[2] <= 12 && data[3] >= 1 && data[3] <= 31 && data[4] <= 23 &&
         data[5] <= 59 && data[6] <= 60;
}

}  // namespace

bool QuietChunks::take(std::string_view type, std::span<const uint8_t> data, const PngHeader& header, bool before) {
  if (type == "tEXt") return ++texts_ <= kMostTexts;
  if (!before || std::find(seen_.begin(), seen_.end(), type) != seen_.end()) return false;
  seen_.emplace_back(type);
  return is_quiet(type, data, header);
}

bool QuietChunks::is_quiet(std::string_view type, std::span<const uint8_t> data, const PngHeader& header) const {
  constexpr std::array<uint32_t, 1> kGamma = {45455};  // of sRGB, as its primaries are
  constexpr std::array<uint32_t, 8> kPrimaries = {31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000};
  const bool palette = header.colour == PngColour::kPalette;
  const size_t entries = header.palette.size() / 3;
  if (type == "PLTE") return palette && data.size() / 3 <= size_t{1} << header.depth;
  if (type == "pHYs") return data.size() == 9;
  if (type == "tIME") return is_time(data);
  if (type == "tRNS") {
    if (palette) return entries > 0 && !data.empty() && data.size() <= entries;
    return header.channels() % 2 == 1 && are_samples(data, header);
  }
  if (type == "bKGD") return palette ? data.size() == 1 && data[0] < entries : are_samples(data, header);
  if (entries > 0) return false;  // what follows belongs before the palette
  if (type == "gAMA") return are_numbers(data, kGamma);
  if (type == "cHRM") return are_numbers(data, kPrimaries);
  return type == "sRGB" && data.size() == 1 && data[0] < 4;
}

}  // namespace headrace
