// Drives nvJPEG's batched decoding to planes.
//
// Note [stream order]: the engines may write their destinations before earlier work on the stream is done
// (github.com/meta-pytorch/torchcodec/issues/1634). So no work on the device may still use the planes when the call is
// made (StagingRing ensures that), and decode() blocks until the call's work is done, in a thread of the lane.
//
// Note [one stream an engine]: with its default flags nvJPEG keeps two streams for each engine and each state. A GPU
// has few queues for streams (8, unless $CUDA_DEVICE_MAX_CONNECTIONS says otherwise), so a stream that waits for an
// engine holds up the training step's kernels that share its queue. kNoPipeline halves the streams: a step waits less,
// and the engines decode as many images (docs/decisions/0012).
#include "gpu/decoders/nvjpeg_decoder.h"

#include <stdexcept>

namespace headrace {
namespace {

template <class Call>
void give_back(Device& device, Call call) noexcept {
  try {
    const DeviceScope current(device);
    call();
  } catch (const std::exception&) {
  }
}

}  // namespace

void NvjpegDeleter::operator()(nvjpeg::Handle handle) const noexcept {
  give_back(*device, [&] { api->Destroy(handle); });
}

void NvjpegDeleter::operator()(nvjpeg::State state) const noexcept {
  give_back(*device, [&] { api->JpegStateDestroy(state); });
}

NvjpegLibrary::NvjpegLibrary(std::shared_ptr<Device> device, const std::vector<std::string>& candidates, bool hardware)
    : device_(std::move(device)), api_(nvjpeg::load(candidates)), hardware_(hardware) {
  const DeviceScope current(*device_);
  nvjpeg::Handle handle = nullptr;
  const int backend = hardware ? nvjpeg::kHardware : nvjpeg::kGpuHybrid;
  const unsigned flags = hardware ? nvjpeg::kNoPipeline : 0;  // Note [one stream an engine]
  const int status = api_->CreateEx(backend, nullptr, nullptr, flags, &handle);
  if (status != nvjpeg::kSuccess) {
    throw std::runtime_error(std::string("nvJPEG ") + (hardware ? "finds no JPEG engines" : "does not start") + " (" +
                             nvjpeg::status_name(status) +
                             (hardware ? "); in a container, NVIDIA_DRIVER_CAPABILITIES must include video" : ")"));
  }
  handle_ = {handle, NvjpegDeleter{device_, api_}};
  unsigned cores = 0;
  if (hardware && (api_->GetHardwareDecoderInfo(handle, &engines_, &cores) != nvjpeg::kSuccess || engines_ == 0)) {
    throw std::runtime_error(
        "this GPU or its driver has no JPEG engines; in a container, NVIDIA_DRIVER_CAPABILITIES must include video");
  }
}

std::string NvjpegLibrary::describe() const {
  const std::string where = hardware_ ? std::to_string(engines_) + " JPEG engines" : "CUDA cores";
  return "nvJPEG " + nvjpeg::version(*api_) + " (" + api_->path + ") on " + where;
}

NvjpegDecoder::NvjpegDecoder(std::shared_ptr<NvjpegLibrary> library, int most)
    : library_(std::move(library)), most_(most) {
  const nvjpeg::Api& api = *library_->api_;
  const DeviceScope current(*library_->device_);
  nvjpeg::State state = nullptr;
  const int status = api.JpegStateCreate(library_->handle_.get(), &state);
  if (status != nvjpeg::kSuccess) {
    throw std::runtime_error(std::string("nvJPEG makes no state: ") + nvjpeg::status_name(status));
  }
  state_ = {state, NvjpegDeleter{library_->device_, library_->api_}};
  stream_ = OwnedStream(library_->device_);
  decoded_ = OwnedEvent(library_->device_);
  if (library_->hardware_) {
    // Memory for images of usual size; larger ones make it grow. The status is ignored: where this fails, the first
    // decode allocates, or reports the error.
    api.DecodeBatchedPreAllocate(library_->handle_.get(), state, most_, 1024, 1024, nvjpeg::k444, nvjpeg::kYuv);
  }
}

std::string NvjpegDecoder::decode(std::span<const EncodedImage> images) {
  const nvjpeg::Api& api = *library_->api_;
  data_.clear();
  lengths_.clear();
  images_.clear();
  const bool gray = images.front().planes.colour == Colour::kGray;
  for (const EncodedImage& one : images) {
    data_.push_back(one.bytes.data());
    lengths_.push_back(one.bytes.size());
    nvjpeg::Image& image = images_.emplace_back();
    for (int c = 0; c < (gray ? 1 : 3); ++c) {
      image.channel[c] = const_cast<unsigned char*>(one.planes.plane[c].data);
      image.pitch[c] = static_cast<size_t>(one.planes.plane[c].stride);
    }
  }
  const auto count = static_cast<int>(images.size());
  const int format = gray ? nvjpeg::kY : nvjpeg::kYuv;
  int status = api.DecodeBatchedInitialize(library_->handle_.get(), state_.get(), count, 1, format);
  if (status != nvjpeg::kSuccess) return std::string("nvJPEG begins no batch: ") + nvjpeg::status_name(status);
  status = api.DecodeBatched(library_->handle_.get(), state_.get(), data_.data(), lengths_.data(), images_.data(),
                             reinterpret_cast<nvjpeg::CudaStream>(stream_.get()));
  library_->device_->record(decoded_.get(), stream_.get());
  library_->device_->synchronize(decoded_.get());  // throws asynchronous errors of the decode
  if (status != nvjpeg::kSuccess) return std::string("nvJPEG decodes no batch: ") + nvjpeg::status_name(status);
  return {};
}

}  // namespace headrace
