// The interface of a device: memory, streams, events, copies, one kernel. Implemented by CUDA, and for tests by threads
// of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "gpu/kernel/sample_job.h"

namespace headrace {

/// A stream or an event of a device, as a number: torch passes its streams in this form. 0: the default stream.
enum class Stream : uintptr_t {};
enum class Event : uintptr_t {};

/// The device has no memory left, or the system has none that can be pinned.
class OutOfDeviceMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Any thread may call any method while the device is current there: after enter(), or in a DeviceScope. A call that
/// the device refuses throws std::runtime_error. The methods that free or destroy never throw, and make the device
/// current themselves; owned.h has types that call them.
class Device {
 public:
  virtual ~Device() = default;

  /// Makes the device current in the calling thread permanently. For threads of this library only.
  virtual void enter() = 0;
  /// The state that scope_begin replaces and scope_end restores.
  struct ThreadState {
    int device = 0, capture_mode = 0;
  };
  /// Makes the device current in the calling thread until scope_end. See DeviceScope.
  virtual ThreadState scope_begin() = 0;
  virtual void scope_end(ThreadState before) noexcept = 0;

  /// `bytes` bytes of page-locked host memory. Slow: allocate once and reuse. Throws OutOfDeviceMemory.
  virtual uint8_t* allocate_pinned(size_t bytes) = 0;
  virtual void free_pinned(uint8_t* memory) noexcept = 0;
  /// `bytes` bytes of device memory. Also slow. Throws OutOfDeviceMemory.
  virtual uint8_t* allocate(size_t bytes) = 0;
  virtual void free(uint8_t* memory) noexcept = 0;

  virtual Stream make_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;
  virtual Event make_event() = 0;
  virtual void destroy_event(Event event) noexcept = 0;

  /// Makes the event happen once all work that is on the stream now is done. An event that was never recorded has
  /// happened.
  virtual void record(Event event, Stream stream) = 0;
  /// Makes work that is put on the stream after this call wait for the last recording of the event. Does not block.
  virtual void wait(Stream stream, Event event) = 0;
  /// Whether the event has happened. Does not block.
  virtual bool happened(Event event) = 0;
  /// Blocks until the event has happened.
  virtual void synchronize(Event event) = 0;

  /// Puts a copy on the stream. `pinned`: pinned host memory, unchanged until the copy is done.
  virtual void copy_to_device(uint8_t* to, const uint8_t* pinned, size_t bytes, Stream stream) = 0;
  /// Puts a launch on the stream. Its pointers are device pointers.
  virtual void fuse(const FuseLaunch& launch, Stream stream) = 0;

  /// Milliseconds of each of `repeats` runs of a launch, each with a cold cache.
  virtual std::vector<float> time_fuse(const FuseLaunch& launch, int repeats, Stream stream) = 0;
  /// Milliseconds of each of `repeats` copies of `bytes` bytes within the device, each with a cold cache.
  virtual std::vector<float> time_copy(size_t bytes, int repeats, Stream stream) = 0;
};

/// Makes a device current in the calling thread, and restores that thread's state at the end.
class DeviceScope {
 public:
  explicit DeviceScope(Device& device) : device_(device), before_(device.scope_begin()) {}
  ~DeviceScope() { device_.scope_end(before_); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device& device_;
  const Device::ThreadState before_;
};

}  // namespace headrace
