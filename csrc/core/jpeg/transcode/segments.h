// The segments of a JPEG that are not part of its coding: application segments and comments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

/// The segments before the first scan, in the order of the file; unless `all`, only those that a reader may use to show
/// the pixels. `data`: a plain JPEG. Throws NeedsPillow where one of them holds offsets into the file.
std::vector<uint8_t> kept_segments(std::span<const uint8_t> data, bool all);

}  // namespace headrace
