// The devices of this build, by name.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "gpu/decoders/decode_lane.h"
#include "gpu/device/device.h"

namespace headrace {

/// The device "cuda" (in builds with CUDA) number `index`, or "emulated". Raises ValueError for other names. Throws
/// std::runtime_error where CUDA does not start.
std::shared_ptr<Device> device_of(const std::string& kind, int index);

/// `count` decoders of a device (the one of that kind and index), `decoder`: "hardware" or "cuda", with at most `group`
/// images per call. `candidates`: nvJPEG libraries to try. The emulated device gets a test double, or the library with
/// nvJPEG's functions that $HEADRACE_NVJPEG_DOUBLE names (tests/cpp/fake_nvjpeg). Throws std::runtime_error where the
/// device has none.
DecodeLane::Decoders decoders_of(const std::string& kind, int index, const std::shared_ptr<Device>& device,
                                 const std::string& decoder, const std::vector<std::string>& candidates, int count,
                                 int group);

/// Each function adds its part to the module.
void bind_device_ops(pybind11::module_& module);
void bind_benchmarks(pybind11::module_& module);

}  // namespace headrace
