// Shared by the tests of decoders in a device's lane: batches in flight compared with the CPU's, and a damaged file
// among others.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "gpu/batches/device_backend.h"
#include "gpu/device/emulated_device.h"
#include "support/pipeline_samples.h"

namespace headrace::test {

using Counts = std::map<std::string, int64_t>;  // items of each stage, by name
using MakeLane = std::function<std::unique_ptr<DecodeLane>()>;

/// The recipe with a backend for the device, which has these decoders.
PipelineOptions on_device(PipelineOptions options, const std::shared_ptr<Device>& device, const MakeLane& lane);

/// Compares several batches in flight with the CPU's, and checks that nothing is left on the device.
Counts compare_batches(const std::shared_ptr<EmulatedDevice>& device, const PipelineOptions& recipe,
                       const MakeLane& lane);

/// Checks a batch of all images, of which one is damaged: it fails, the others equal the CPU's, and nothing is left on
/// the device.
Counts compare_around_damage(const std::shared_ptr<EmulatedDevice>& device, const MakeLane& lane);

}  // namespace headrace::test
