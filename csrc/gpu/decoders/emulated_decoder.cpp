// Decodes whole images, one after another.
#include "gpu/decoders/emulated_decoder.h"

namespace headrace {

std::string EmulatedDecoder::decode(std::span<const EncodedImage> images) {
  for (const EncodedImage& one : images) {
    const JpegHeader header = parse_jpeg_header(one.bytes);
    if (header.not_plain != nullptr) return header.not_plain;
    const PlaneLayout whole = plane_layout(header, whole_image(header.size));
    // All planes are in one piece of memory, which begins with the first.
    decoder_.decode(one.bytes, header, whole, const_cast<uint8_t*>(one.planes.plane[0].data));
  }
  return {};
}

}  // namespace headrace
