#include "core/base/checksum.h"

#include <libdeflate.h>

namespace headrace {

uint32_t crc32(std::span<const uint8_t> bytes) { return libdeflate_crc32(0, bytes.data(), bytes.size()); }

}  // namespace headrace
