// Times of single stages on a device, for bench/: what a loader's own clocks cannot see.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/plan/plan.h"
#include "core/rows/output.h"
#include "gpu/decoders/batch_decoder.h"
#include "gpu/device/device.h"

namespace headrace {

struct FuseTiming {
  std::vector<float> ms;  // of each run of the launch, the cache cold
  size_t bytes = 0;       // that a launch cannot but move: the samples of the boxes, and the outputs
};

/// The fused kernel alone on a batch of files (decoded by the CPU beforehand), plan i on file i, outputs of `size`.
FuseTiming time_fuse(const std::shared_ptr<Device>& device, std::span<const std::span<const uint8_t>> files,
                     std::span<const Plan> plans, Size size, const OutputStrides& strides, std::span<const uint8_t> lut,
                     int repeats);

/// Seconds of each of `repeats` passes over the files by the device's decoders, one thread each, in groups of `group`
/// files: decoding whole images to planes, and nothing else.
std::vector<double> time_decoders(const std::shared_ptr<Device>& device,
                                  const std::vector<std::unique_ptr<BatchDecoder>>& decoders,
                                  std::span<const std::span<const uint8_t>> files, int group, int repeats);

std::vector<float> time_copy(const std::shared_ptr<Device>& device, size_t bytes, int repeats);

}  // namespace headrace
