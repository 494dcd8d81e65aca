// nvJPEG as a BatchDecoder: the JPEG engines of the GPU, or its CUDA cores.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/decoders/batch_decoder.h"
#include "gpu/decoders/nvjpeg_api.h"
#include "gpu/device/device.h"

namespace headrace {

/// nvJPEG on one device, which its decoders share.
class NvjpegLibrary {
 public:
  /// `hardware`: the JPEG engines, else CUDA cores. Throws std::runtime_error where the library, the device or the
  /// driver has none: the message says which.
  NvjpegLibrary(std::shared_ptr<Device> device, const std::vector<std::string>& candidates, bool hardware);
  ~NvjpegLibrary();
  NvjpegLibrary(const NvjpegLibrary&) = delete;
  NvjpegLibrary& operator=(const NvjpegLibrary&) = delete;

  /// In words: its version, the library's path, and what of the GPU decodes.
  std::string describe() const;

 private:
  friend class NvjpegDecoder;
  const std::shared_ptr<Device> device_;
  const std::shared_ptr<const nvjpeg::Api> api_;
  const bool hardware_;
  nvjpeg::Handle handle_ = nullptr;
  unsigned engines_ = 0;
};

/// One state, one stream.
class NvjpegDecoder final : public BatchDecoder {
 public:
  /// `most`: images of a call. Made in the thread that starts the loader: making states takes locks. Throws
  /// std::runtime_error where nvJPEG or the device makes no more.
  NvjpegDecoder(std::shared_ptr<NvjpegLibrary> library, int most);
  ~NvjpegDecoder() override;

  int most() const override { return most_; }
  std::string decode(std::span<const EncodedImage> images) override;

 private:
  struct Empty {};
  NvjpegDecoder(std::shared_ptr<NvjpegLibrary> library, int most, Empty);

  const std::shared_ptr<NvjpegLibrary> library_;
  const int most_;
  nvjpeg::State state_ = nullptr;
  Stream stream_{};
  Event decoded_{};
  std::vector<const unsigned char*> data_;
  std::vector<size_t> lengths_;
  std::vector<nvjpeg::Image> images_;
};

}  // namespace headrace
