// Single stages on the caller's stream: decode one file, or resize and map images in the device's memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/fuse/sinks/output.h"
#include "core/plan/plan.h"
#include "gpu/batches/staging.h"

namespace headrace {

/// Three planes of one image, R, G and B, in the device's memory.
struct DeviceImage {
  const uint8_t* plane[3] = {};
  int stride = 0;  // bytes from row to row
  Size size;
};

/// Any thread may call any method. `stream`: the caller's; work put on it later sees the results.
class DeviceOps {
 public:
  explicit DeviceOps(std::shared_ptr<Device> device);

  /// Runs plan i on image i and writes sample i to output + i * strides.sample_bytes. Plans resize at most once, to
  /// `size`. `lut`: [channels][256] elements, in host memory. Throws std::runtime_error where the device refuses.
  void fuse(std::span<const DeviceImage> images, std::span<const Plan> plans, Size size, const OutputStrides& strides,
            std::span<const uint8_t> lut, uint8_t* output, Stream stream);
  /// Decodes a file on the CPU and converts it on the device to three planes (3, H, W), uint8, at `output`. The pixels
  /// are libjpeg-turbo's. Throws NeedsPillow, or std::runtime_error where the device refuses.
  void decode(std::span<const uint8_t> bytes, uint8_t* output, Stream stream);

 private:
  void launch(StagingRing::Lease& area, std::vector<SampleJob>& jobs, OutputFormat format, std::span<const uint8_t> lut,
              Stream stream);

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<StagingRing> ring_;
};

}  // namespace headrace
