// Benchmarks of single stages on a device, for bench/: a loader's own clocks see only whole batches.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/fuse/sinks/output.h"
#include "core/plan/plan.h"
#include "gpu/decoders/batch_decoder.h"
#include "gpu/device/device.h"

namespace headrace {

/// What time_fuse measured.
struct FuseTiming {
  std::vector<float> ms;  // of each run of the launch, with a cold cache
  size_t bytes = 0;       // minimum number of bytes transferred: the samples of the boxes, and the outputs
};

/// Times the fused kernel on a batch of JPEG files that the CPU has decoded before: plan i on file i, with outputs of
/// `size`. `lut`: [channels][256] elements. Throws what the device throws; then nothing is left on it.
FuseTiming time_fuse(const std::shared_ptr<Device>& device, std::span<const std::span<const uint8_t>> files,
                     std::span<const Plan> plans, Size size, const OutputStrides& strides, std::span<const uint8_t> lut,
                     int repeats);

/// Seconds of each of `repeats` passes of the device's decoders over the files: whole images to planes. Each decoder
/// has a thread and takes groups of `group` files. 0: a decoder refused a group.
std::vector<double> time_decoders(const std::shared_ptr<Device>& device,
                                  const std::vector<std::unique_ptr<BatchDecoder>>& decoders,
                                  std::span<const std::span<const uint8_t>> files, int group, int repeats);

/// Milliseconds of each of `repeats` copies of `bytes` bytes within the device. Throws what the device throws; then
/// nothing is left on it.
std::vector<float> time_copy(const std::shared_ptr<Device>& device, size_t bytes, int repeats);

}  // namespace headrace
