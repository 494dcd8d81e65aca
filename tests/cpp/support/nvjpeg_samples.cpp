// Loads the double, and makes its behaviours.
#include "support/nvjpeg_samples.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <stdexcept>

namespace headrace::test {
namespace {

/// A function of the double, the same library that NvjpegLibrary loads from this path.
template <class Function>
Function* find(const char* name) {
  static void* const library = dlopen(FAKE_NVJPEG, RTLD_NOW | RTLD_LOCAL);
  auto* function = library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(dlerror());
  return function;
}

Stream of(nvjpeg::CudaStream stream) { return static_cast<Stream>(reinterpret_cast<uintptr_t>(stream)); }

}  // namespace

thread_local const WatchedDevice* WatchedDevice::current_ = nullptr;

Device::ThreadState WatchedDevice::scope_begin() {
  const ThreadState before{.device = current() ? 1 : 0};
  current_ = this;
  return before;
}

void WatchedDevice::scope_end(ThreadState before) noexcept {
  if (before.device == 0) current_ = nullptr;
}

uint8_t* WatchedDevice::allocate_pinned(size_t bytes) {
  watch();
  return EmulatedDevice::allocate_pinned(bytes);
}

uint8_t* WatchedDevice::allocate(size_t bytes) {
  watch();
  return EmulatedDevice::allocate(bytes);
}

void WatchedDevice::make() {
  watch();
  if (makes_left_-- <= 0) throw std::runtime_error("the device makes no more");
}

Stream WatchedDevice::make_stream() {
  make();
  return EmulatedDevice::make_stream();
}

Event WatchedDevice::make_event() {
  make();
  return EmulatedDevice::make_event();
}

void WatchedDevice::record(Event event, Stream stream) {
  watch();
  {
    const std::lock_guard lock(mutex_);
    if (failing_streams_.erase(stream) > 0) failing_events_.insert(event);
  }
  EmulatedDevice::record(event, stream);
}

void WatchedDevice::wait(Stream stream, Event event) {
  watch();
  EmulatedDevice::wait(stream, event);
}

void WatchedDevice::synchronize(Event event) {
  watch();
  EmulatedDevice::synchronize(event);
  const std::lock_guard lock(mutex_);
  if (failing_events_.erase(event) > 0) throw std::runtime_error("work on the stream has failed");
}

void WatchedDevice::copy_to_device(uint8_t* to, const uint8_t* pinned, size_t bytes, Stream stream) {
  watch();
  EmulatedDevice::copy_to_device(to, pinned, bytes, stream);
}

void WatchedDevice::fuse(const FuseLaunch& launch, Stream stream) {
  watch();
  EmulatedDevice::fuse(launch, stream);
}

void WatchedDevice::fail_later(Stream stream) {
  const std::lock_guard lock(mutex_);
  failing_streams_.insert(stream);
}

FakeLibrary::FakeLibrary() {
  behave({});
  before_ = record();
}

FakeLibrary::~FakeLibrary() {
  CHECK(complaint() == "");
  const FakeRecord left = record();
  CHECK(left.handles == before_.handles);
  CHECK(left.states == before_.states);
  behave({});  // the behaviour's device is gone
}

void FakeLibrary::behave(const FakeBehaviour& behaviour) {
  find<decltype(fake_nvjpeg_behave)>("fake_nvjpeg_behave")(&behaviour);
}

FakeRecord FakeLibrary::record() const {
  FakeRecord record;
  find<decltype(fake_nvjpeg_record)>("fake_nvjpeg_record")(&record);
  return record;
}

std::string FakeLibrary::complaint() const { return find<decltype(fake_nvjpeg_complaint)>("fake_nvjpeg_complaint")(); }

std::vector<std::string> FakeLibrary::candidates() { return {FAKE_NVJPEG}; }

FakeBehaviour on(WatchedDevice& device) {
  FakeBehaviour behaviour;
  behaviour.device = &device;
  behaviour.current = [](void* device) { return static_cast<WatchedDevice*>(device)->current(); };
  return behaviour;
}

FakeBehaviour in_stream_order(WatchedDevice& device) {
  FakeBehaviour behaviour = on(device);
  behaviour.copy = [](void* device, nvjpeg::CudaStream stream, unsigned char* to, const unsigned char* from,
                      size_t bytes) {
    static_cast<WatchedDevice*>(device)->copy_to_device(to, from, bytes, of(stream));
  };
  return behaviour;
}

FakeBehaviour failing_later(WatchedDevice& device) {
  FakeBehaviour behaviour = on(device);
  behaviour.fail_later = [](void* device, nvjpeg::CudaStream stream) {
    static_cast<WatchedDevice*>(device)->fail_later(of(stream));
  };
  return behaviour;
}

}  // namespace headrace::test
