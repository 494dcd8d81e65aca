// The interface of a device's decoders, which decode many images per call: nvJPEG, or its test double.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/jpeg/planes/planar_image.h"

namespace headrace {

/// One image to decode: its file in pinned memory, and the planes to write.
struct EncodedImage {
  std::span<const uint8_t> bytes;
  PlanarImage planes;  // whole planes, in device memory
};

/// Not thread-safe: each thread has its own.
class BatchDecoder {
 public:
  virtual ~BatchDecoder() = default;
  /// Maximum number of images per call.
  virtual int most() const = 0;
  /// Decodes images, all gray or all in colour, and blocks until their planes are written. Returns an empty string; or
  /// returns, or throws, the reason why one of them could not be decoded: then no plane is valid.
  virtual std::string decode(std::span<const EncodedImage> images) = 0;
};

}  // namespace headrace
