// What the GPU path asks of a device: memory, streams, events, copies, one kernel. CUDA is such a device; so are
// threads of the host, which the tests run on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "gpu/kernel/sample_job.h"

namespace headrace {

/// A stream or an event of a device. Numbers, so that streams of torch can be named too; 0 is the default stream.
enum class Stream : uintptr_t {};
enum class Event : uintptr_t {};

/// Memory that the device (or the system, for pinning) does not have.
class OutOfDeviceMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Any thread may call any method, where the device is current: after enter(), or in the scope of a DeviceScope. What
/// the device refuses throws std::runtime_error; the methods that give back never throw.
class Device {
 public:
  virtual ~Device() = default;

  /// Makes the device current for good: the first call of each of our own threads.
  virtual void enter() = 0;
  /// What a thread had before scope_begin, which makes the device current.
  struct ThreadState {
    int device = 0, capture_mode = 0;
  };
  virtual ThreadState scope_begin() = 0;
  virtual void scope_end(ThreadState before) noexcept = 0;

  /// Host memory that the device copies from without a detour. Slow: for memory that is kept.
  virtual uint8_t* allocate_pinned(size_t bytes) = 0;
  virtual void free_pinned(uint8_t* memory) noexcept = 0;
  virtual uint8_t* allocate(size_t bytes) = 0;
  virtual void free(uint8_t* memory) noexcept = 0;

  virtual Stream make_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;
  virtual Event make_event() = 0;
  virtual void destroy_event(Event event) noexcept = 0;

  /// The event happens when all that is on the stream now is done. An event never recorded has happened.
  virtual void record(Event event, Stream stream) = 0;
  /// What is put on the stream from now on waits for the event as it was last recorded. Does not block.
  virtual void wait(Stream stream, Event event) = 0;
  virtual bool happened(Event event) = 0;
  /// Blocks until the event has happened.
  virtual void synchronize(Event event) = 0;

  virtual void copy_to_device(uint8_t* to, const uint8_t* pinned, size_t bytes, Stream stream) = 0;
  /// The launch's pointers are the device's.
  virtual void fuse(const FuseLaunch& launch, Stream stream) = 0;

  /// Milliseconds of each of `repeats` runs of a launch, the device's cache holding other memory before each.
  virtual std::vector<float> time_fuse(const FuseLaunch& launch, int repeats, Stream stream) = 0;
  /// The same for a copy of so many bytes within the device.
  virtual std::vector<float> time_copy(size_t bytes, int repeats, Stream stream) = 0;
};

/// Makes a device current in somebody else's thread, and leaves that as it was.
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
