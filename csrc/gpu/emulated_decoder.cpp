// Whole images, one after the other.
#include "emulated_decoder.h"

#include "../core/error.h"

namespace headrace {

bool EmulatedDecoder::decode(std::span<const EncodedImage> images) {
  for (const EncodedImage& one : images) {
    const JpegHeader header = parse_jpeg_header(one.bytes);
    if (header.not_plain != nullptr) return false;
    const PlaneLayout whole = plane_layout(header, {0, 0, header.size.width, header.size.height});
    try {
      // The first plane begins where all of them do.
      decoder_.decode(one.bytes, header, whole, const_cast<uint8_t*>(one.planes.plane[0].data));
    } catch (const NeedsPillow&) {
      return false;
    }
  }
  return true;
}

}  // namespace headrace
