// A test double of nvJPEG: libjpeg-turbo decodes into the memory of an emulated device.
#pragma once

#include "core/jpeg/decode/plane_decoder.h"
#include "gpu/decoders/batch_decoder.h"

namespace headrace {

/// Decodes exactly as libjpeg-turbo does.
class EmulatedDecoder : public BatchDecoder {
 public:
  /// `most`: see BatchDecoder::most.
  explicit EmulatedDecoder(int most) : most_(most) {}
  int most() const override { return most_; }
  std::string decode(std::span<const EncodedImage> images) override;

 private:
  const int most_;
  PlaneDecoder decoder_{nullptr};
};

}  // namespace headrace
