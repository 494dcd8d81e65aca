// Devices that fail the test if something is left on them.
#pragma once

#include <doctest/doctest.h>

#include <memory>

#include "gpu/device/emulated_device.h"

namespace headrace::test {

/// A device on which no memory, stream or event may be left when its last owner releases it.
template <class Kind = EmulatedDevice>
std::shared_ptr<Kind> checked_device() {
  return std::shared_ptr<Kind>(new Kind, [](Kind* device) {
    CHECK(device->alive() == 0);
    delete device;
  });
}

}  // namespace headrace::test
