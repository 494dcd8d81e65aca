// The stages on their own, on the caller's stream: decode one file, or resize and map images that lie on the device.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/plan/plan.h"
#include "core/rows/output.h"
#include "gpu/batches/staging.h"

namespace headrace {

/// Three planes of one image, R, G and B, in the device's memory.
struct DeviceImage {
  const uint8_t* plane[3] = {};
  int stride = 0;  // bytes from row to row
  Size size;
};

class DeviceOps {
 public:
  explicit DeviceOps(std::shared_ptr<Device> device);

  /// Runs plan i on image i; sample i goes to output + i * strides.sample_bytes. Plans resize at most once, to `size`.
  /// `lut`: [channels][256] elements, in host memory. Any thread.
  void fuse(std::span<const DeviceImage> images, std::span<const Plan> plans, Size size, const OutputStrides& strides,
            std::span<const uint8_t> lut, uint8_t* output, Stream stream);
  /// Decodes a file on the CPU, exactly, and has the device make its three planes (3, H, W) at `output`, which has room
  /// for them. Throws NeedsPillow. Any thread.
  void decode(std::span<const uint8_t> bytes, uint8_t* output, Stream stream);

 private:
  void launch(StagingRing::Lease& area, std::vector<SampleJob>& jobs, OutputFormat format, std::span<const uint8_t> lut,
              Stream stream);

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<StagingRing> ring_;
};

}  // namespace headrace
