// The devices of this build, by name.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "gpu/decoders/decode_lane.h"
#include "gpu/device/device.h"

namespace headrace {

/// "cuda" (where it was built) or "emulated". Throws ValueError for others, std::runtime_error where CUDA does not
/// start.
std::shared_ptr<Device> device_of(const std::string& kind, int index);

/// The decoders of a device: "hardware" or "cuda". `candidates`: nvJPEG libraries to try. On the emulated device a
/// stand-in, or the library with nvJPEG's functions that $HEADRACE_NVJPEG_DOUBLE names (tests/cpp/fake_nvjpeg.cpp).
/// Throws std::runtime_error where it has none.
DecodeLane::Decoders decoders_of(const std::string& kind, const std::shared_ptr<Device>& device,
                                 const std::string& decoder, const std::vector<std::string>& candidates, int count,
                                 int group);

void bind_device_ops(pybind11::module_& module);
void bind_timing(pybind11::module_& module);

}  // namespace headrace
