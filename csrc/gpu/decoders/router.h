// Decides which files a device's decoders may take. Everything odd is the CPU's.
#pragma once

#include "core/jpeg/jpeg_header.h"

namespace headrace {

/// nullptr: baseline, one interleaved scan, gray or YCbCr in a sampling that the decoders have. Else a static sentence:
/// why the CPU decodes it. `header` is plain.
const char* not_for_device(const JpegHeader& header);

}  // namespace headrace
