// The checksum of bytes that cross a network.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

/// CRC-32 as in PNG, zlib and gzip, by libdeflate: many times as fast as zlib's.
uint32_t crc32(std::span<const uint8_t> bytes);

}  // namespace headrace
