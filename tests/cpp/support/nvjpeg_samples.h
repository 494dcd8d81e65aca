// Shared by the tests of nvJPEG: the library's double, and an emulated device that checks the threads of its callers
// and fails on request.
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fake_nvjpeg/fake_nvjpeg.h"
#include "gpu/device/emulated_device.h"

namespace headrace::test {

/// Counts the calls from threads in which it is not current.
class WatchedDevice final : public EmulatedDevice {
 public:
  void enter() override { current_ = this; }
  ThreadState scope_begin() override;
  void scope_end(ThreadState before) noexcept override;
  uint8_t* allocate_pinned(size_t bytes) override;
  uint8_t* allocate(size_t bytes) override;
  Stream make_stream() override;
  Event make_event() override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  void synchronize(Event event) override;
  void copy_to_device(uint8_t* to, const uint8_t* pinned, size_t bytes, Stream stream) override;
  void fuse(const FuseLaunch& launch, Stream stream) override;

  bool current() const { return current_ == this; }
  int strays() const { return strays_; }
  /// Sets how many more streams and events it makes before it throws.
  void make_only(int count) { makes_left_ = count; }
  /// Makes synchronize() throw for the next event that is recorded on the stream.
  void fail_later(Stream stream);

 private:
  void watch() { strays_ += !current(); }
  void make();

  static thread_local const WatchedDevice* current_;
  std::atomic<int> strays_{0}, makes_left_{1 << 30};
  std::mutex mutex_;
  std::set<Stream> failing_streams_;  // guarded by mutex_
  std::set<Event> failing_events_;    // guarded by mutex_
};

/// The double of nvJPEG with its default behaviour. The destructor checks that no handle or state is leaked and that
/// there is no complaint.
class FakeLibrary {
 public:
  FakeLibrary();
  ~FakeLibrary();
  FakeLibrary(const FakeLibrary&) = delete;
  FakeLibrary& operator=(const FakeLibrary&) = delete;

  void behave(const FakeBehaviour& behaviour);
  FakeRecord record() const;
  /// The first rule that was broken since behave().
  std::string complaint() const;
  /// Clears the complaint.
  void forgive() { behave({}); }
  static std::vector<std::string> candidates();

 private:
  FakeRecord before_;
};

/// Behaviour that requires the device to be current in each call.
FakeBehaviour on(WatchedDevice& device);

/// The same with decoders that write in the order of the stream, as those on CUDA cores do.
FakeBehaviour in_stream_order(WatchedDevice& device);

/// The same with errors that appear at the next wait for the stream.
FakeBehaviour failing_later(WatchedDevice& device);

}  // namespace headrace::test
