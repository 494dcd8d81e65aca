// Puts all work on the caller's stream, in order with the caller's own. No host thread waits.
#include "gpu/batches/device_ops.h"

#include <cstring>

#include "core/base/error.h"
#include "core/fuse/sinks/rgbx_output.h"
#include "core/jpeg/decode/plane_decoder.h"

namespace headrace {
namespace {

constexpr int kCallsInFlight = 8;

}  // namespace

DeviceOps::DeviceOps(std::shared_ptr<Device> device)
    : device_(std::move(device)), ring_(std::make_shared<StagingRing>(device_, kCallsInFlight)) {}

void DeviceOps::launch(StagingRing::Lease& area, std::vector<SampleJob>& jobs, OutputFormat format,
                       std::span<const uint8_t> lut, Stream stream) {
  const StagedBytes table = area->take(lut.size());
  std::memcpy(table.host, lut.data(), lut.size());
  format.lut = table.device;
  const StagedBytes list = area->take(jobs.size() * sizeof(SampleJob));
  std::memcpy(list.host, jobs.data(), jobs.size() * sizeof(SampleJob));
  area->upload(stream);
  device_->fuse(launch_of(reinterpret_cast<const SampleJob*>(list.device), jobs, format), stream);
  area.release(stream);
}

void DeviceOps::fuse(std::span<const DeviceImage> images, std::span<const Plan> plans, Size size,
                     const OutputStrides& strides, std::span<const uint8_t> lut, uint8_t* output, Stream stream) {
  const DeviceScope current(*device_);
  StagingRing::Lease area = ring_->acquire();
  JobBuilder builder;
  std::vector<SampleJob> jobs;
  for (size_t i = 0; i < images.size(); ++i) {
    PlanarImage image;
    image.colour = Colour::kRgb;
    image.width = images[i].size.width;
    image.height = images[i].size.height;
    for (int c = 0; c < 3; ++c) {
      image.plane[c].data = images[i].plane[c];
      image.plane[c].stride = images[i].stride;
      image.plane[c].width = image.width;
      image.plane[c].height = image.height;
    }
    jobs.push_back(builder.build(plans[i], image, *area));
    jobs.back().output = output + i * strides.sample_bytes;
  }
  launch(area, jobs, output_format(size, strides), lut, stream);
}

void DeviceOps::decode(std::span<const uint8_t> bytes, uint8_t* output, Stream stream) {
  const JpegHeader header = parse_jpeg_header(bytes);
  if (header.not_plain != nullptr) throw NeedsPillow(Stage::kHeader, header.not_plain);
  const DeviceScope current(*device_);
  StagingRing::Lease area = ring_->acquire();
  const PlaneLayout whole = plane_layout(header, whole_image(header.size));
  const StagedBytes planes = area->take(whole.bytes);
  PlaneDecoder(kernels().blocks).decode(bytes, header, whole, planes.host);
  std::vector<SampleJob> jobs{JobBuilder().build(as_it_is(header.size), whole.at(planes.device), *area)};
  jobs[0].output = output;
  launch(area, jobs, output_format(header.size, strides_of(Layout::kPlanar, 3, header.size, 1)), byte_entries(),
         stream);
}

}  // namespace headrace
