// The rows of a box as libjpeg-turbo makes them.
#pragma once

#include <span>

#include "core/base/row_buffer.h"
#include "core/jpeg/sequential/jpeg_session.h"

namespace headrace {

/// As JpegDecoder::decode, after session.read_header().
void push_library_rows(const JpegImage& image, JpegSession& session, std::span<const uint8_t> data,
                       const JpegHeader& header, Box box, RowBuffer& rows, RowSink& sink);

}  // namespace headrace
