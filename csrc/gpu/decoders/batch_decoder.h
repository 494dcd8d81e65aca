// What decodes encoded images into a device's memory, many at a time: nvJPEG, or a stand-in of the tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/planes/planar_image.h"

namespace headrace {

/// One image to decode: its file in pinned memory, and where its samples go.
struct EncodedImage {
  std::span<const uint8_t> bytes;
  PlanarImage planes;  // whole planes, in the device's memory
};

/// One a thread, never shared.
class BatchDecoder {
 public:
  virtual ~BatchDecoder() = default;
  /// Most images of a call.
  virtual int most() const = 0;
  /// Decodes images that are all gray, or all not, and returns when their samples are there. Returns, or throws, why
  /// any of them could not be decoded: then none counts. Empty: all are there.
  virtual std::string decode(std::span<const EncodedImage> images) = 0;
};

}  // namespace headrace
