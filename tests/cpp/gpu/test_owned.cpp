// Owners of a device's resources release each resource exactly once.
#include <doctest/doctest.h>

#include <type_traits>
#include <utility>

#include "gpu/device/owned.h"
#include "support/checked_device.h"

using namespace headrace;
using namespace headrace::test;

TEST_CASE("an owner gives back what it made, and moves without a copy") {
  const auto device = checked_device();
  {
    OwnedStream stream(device);
    const OwnedEvent event(device);
    OwnedMemory memory(device, 100);
    const OwnedPinned pinned(device, 100);
    CHECK(device->alive() == 4);
    uint8_t* const address = memory.get();
    OwnedMemory other = std::move(memory);
    CHECK(other.get() == address);
    CHECK_FALSE(memory);
    CHECK(device->alive() == 4);
    other = OwnedMemory(device, 200);  // releases the first one
    CHECK(device->alive() == 4);
    stream = OwnedStream();
    CHECK(device->alive() == 3);
  }
  CHECK(device->alive() == 0);
  static_assert(!std::is_copy_constructible_v<OwnedEvent> && !std::is_copy_assignable_v<OwnedEvent>);
}

TEST_CASE("an owner keeps its device alive") {
  std::weak_ptr<Device> seen;
  OwnedEvent event;
  {
    const auto device = checked_device();
    seen = device;
    event = OwnedEvent(device);
  }
  CHECK_FALSE(seen.expired());
  event = OwnedEvent();
  CHECK(seen.expired());
}
