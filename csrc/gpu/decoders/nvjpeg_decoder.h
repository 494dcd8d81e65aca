// nvJPEG as a BatchDecoder: the JPEG engines of the GPU, or its CUDA cores.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/decoders/batch_decoder.h"
#include "gpu/decoders/nvjpeg_api.h"
#include "gpu/device/owned.h"

namespace headrace {

/// Destroys handles and states of nvJPEG where their device is current. A lost device has already lost them.
struct NvjpegDeleter {
  std::shared_ptr<Device> device;
  std::shared_ptr<const nvjpeg::Api> api;

  void operator()(nvjpeg::Handle handle) const noexcept;
  void operator()(nvjpeg::State state) const noexcept;
};

/// A handle of nvJPEG on one device. Its decoders share it.
class NvjpegLibrary {
 public:
  /// `candidates`: libraries to try, as for nvjpeg::load. `hardware`: decode on the JPEG engines, else on CUDA cores.
  /// Throws std::runtime_error where the library, the device or the driver lacks them; the message says which.
  NvjpegLibrary(std::shared_ptr<Device> device, const std::vector<std::string>& candidates, bool hardware);

  /// In words: version and path of the library, and whether engines or CUDA cores decode.
  std::string describe() const;

 private:
  friend class NvjpegDecoder;
  const std::shared_ptr<Device> device_;
  const std::shared_ptr<const nvjpeg::Api> api_;
  const bool hardware_;
  std::unique_ptr<nvjpeg::nvjpegHandle, NvjpegDeleter> handle_;
  unsigned engines_ = 0;
};

/// A decoder with a state and a stream of its own.
class NvjpegDecoder final : public BatchDecoder {
 public:
  /// `most`: maximum number of images per call. Making a state takes locks: do it before the decoders' threads start.
  /// Throws std::runtime_error where nvJPEG or the device refuses.
  NvjpegDecoder(std::shared_ptr<NvjpegLibrary> library, int most);

  int most() const override { return most_; }
  std::string decode(std::span<const EncodedImage> images) override;

 private:
  const std::shared_ptr<NvjpegLibrary> library_;
  const int most_;
  OwnedStream stream_;
  OwnedEvent decoded_;
  std::unique_ptr<nvjpeg::nvjpegJpegState, NvjpegDeleter> state_;
  std::vector<const unsigned char*> data_;
  std::vector<size_t> lengths_;
  std::vector<nvjpeg::Image> images_;
};

}  // namespace headrace
