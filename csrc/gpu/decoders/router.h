// Decides which files a device's decoders may take. The CPU decodes all others.
#pragma once

#include "core/jpeg/sequential/jpeg_header.h"

namespace headrace {

/// nullptr for files that the device may decode: baseline, one interleaved scan, gray or YCbCr, with a supported
/// sampling. Else why the CPU decodes the file, as a static string. `header`: of a plain file.
const char* not_for_device(const JpegHeader& header);

}  // namespace headrace
