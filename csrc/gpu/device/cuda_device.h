// A CUDA GPU as a Device, through the runtime API.
#pragma once

#include <memory>
#include <string>

#include "gpu/device/device.h"

namespace headrace {

/// The GPU with this index, as CUDA and torch count them. Throws std::runtime_error where there is none.
std::shared_ptr<Device> cuda_device(int index);

/// Why CUDA cannot be used on this machine, as a sentence; empty where it can. The first call starts CUDA.
std::string cuda_trouble();

}  // namespace headrace
