// Small PNGs with uncompressed data, written chunk by chunk.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace headrace {

using PngBytes = std::vector<uint8_t>;

inline void append_number(PngBytes& to, uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) to.push_back(static_cast<uint8_t>(value >> shift));
}

/// Bit by bit, as annex D of the specification defines it.
inline uint32_t png_checksum(const PngBytes& bytes, size_t from) {
  uint32_t sum = ~0u;
  for (size_t i = from; i < bytes.size(); ++i) {
    sum ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) sum = sum & 1 ? 0xedb88320u ^ sum >> 1 : sum >> 1;
  }
  return ~sum;
}

inline void append_chunk(PngBytes& to, std::string_view name, const PngBytes& data = {}) {
  append_number(to, static_cast<uint32_t>(data.size()));
  const size_t from = to.size();
  to.insert(to.end(), name.begin(), name.end());
  to.insert(to.end(), data.begin(), data.end());
  append_number(to, png_checksum(to, from));
}

/// A zlib stream that stores its bytes, at most 65,535 of them.
inline PngBytes stored(const PngBytes& bytes) {
  const auto size = static_cast<uint16_t>(bytes.size()), other = static_cast<uint16_t>(~size);
  PngBytes made = {0x78, 1, 1, uint8_t(size & 255), uint8_t(size >> 8), uint8_t(other & 255), uint8_t(other >> 8)};
  made.insert(made.end(), bytes.begin(), bytes.end());
  uint32_t low = 1, high = 0;
  for (const uint8_t one : bytes) {
    low = (low + one) % 65521;
    high = (high + low) % 65521;
  }
  append_number(made, high << 16 | low);
  return made;
}

struct PngSample {
  int width = 3, height = 2, depth = 8, colour = 2, interlaced = 0;
  PngBytes rows;                       // each after the byte of its filter
  PngBytes palette;                    // empty: no chunk
  std::string_view before{}, after{};  // names of empty chunks
};

inline PngBytes png_of(const PngSample& sample) {
  PngBytes made = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, header;
  append_number(header, static_cast<uint32_t>(sample.width));
  append_number(header, static_cast<uint32_t>(sample.height));
  for (const int one : {sample.depth, sample.colour, 0, 0, sample.interlaced})
    header.push_back(static_cast<uint8_t>(one));
  append_chunk(made, "IHDR", header);
  if (!sample.palette.empty()) append_chunk(made, "PLTE", sample.palette);
  if (!sample.before.empty()) append_chunk(made, sample.before);
  append_chunk(made, "IDAT", stored(sample.rows));
  if (!sample.after.empty()) append_chunk(made, sample.after);
  append_chunk(made, "IEND");
  return made;
}

}  // namespace headrace
