// Streams, events and memory of a device, each owned by one object that frees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "gpu/device/device.h"

namespace headrace {

/// Owns one handle of a device, and keeps the device alive as long. Move-only; a moved-from or default object owns
/// nothing. Not synchronised: one thread at a time.
template <class Handle, void (Device::*kGiveBack)(Handle) noexcept>
class Owned {
 public:
  Owned() = default;
  ~Owned() { reset(); }
  Owned(Owned&& other) noexcept : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      device_ = std::move(other.device_);
      handle_ = std::exchange(other.handle_, Handle{});
    }
    return *this;
  }

  /// Handle{} (0 or nullptr) if this owns nothing.
  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != Handle{}; }

 protected:
  Owned(std::shared_ptr<Device> device, Handle handle) noexcept : device_(std::move(device)), handle_(handle) {}

 private:
  void reset() noexcept {
    if (handle_ != Handle{}) ((*device_).*kGiveBack)(std::exchange(handle_, Handle{}));
    device_.reset();
  }

  std::shared_ptr<Device> device_;
  Handle handle_{};
};

// The constructors below throw what the device throws, and need it to be current; the destructors do not.

/// A stream. The destructor does not wait for the work on it.
class OwnedStream : public Owned<Stream, &Device::destroy_stream> {
 public:
  OwnedStream() = default;
  explicit OwnedStream(const std::shared_ptr<Device>& device) : Owned(device, device->make_stream()) {}
};

/// An event.
class OwnedEvent : public Owned<Event, &Device::destroy_event> {
 public:
  OwnedEvent() = default;
  explicit OwnedEvent(const std::shared_ptr<Device>& device) : Owned(device, device->make_event()) {}
};

/// `bytes` bytes of the device's memory. The device must not use them any more when this is destroyed.
class OwnedMemory : public Owned<uint8_t*, &Device::free> {
 public:
  OwnedMemory() = default;
  OwnedMemory(const std::shared_ptr<Device>& device, size_t bytes) : Owned(device, device->allocate(bytes)) {}
};

/// `bytes` bytes of pinned host memory. The device must not use them any more when this is destroyed.
class OwnedPinned : public Owned<uint8_t*, &Device::free_pinned> {
 public:
  OwnedPinned() = default;
  OwnedPinned(const std::shared_ptr<Device>& device, size_t bytes) : Owned(device, device->allocate_pinned(bytes)) {}
};

}  // namespace headrace
