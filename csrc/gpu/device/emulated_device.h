// A device made of host threads: a stream is a thread, device memory is separate host memory. A missing copy, event or
// wait gives wrong results here as on a GPU, and sanitizers report it.
#pragma once

#include <memory>

#include "gpu/device/device.h"

namespace headrace {

/// Counts allocations, so that tests can find leaks.
class EmulatedDevice : public Device {
 public:
  /// Poison value of fresh memory that exposes uninitialised reads.
  static constexpr uint8_t kPoison = 0xA5;

  EmulatedDevice();
  ~EmulatedDevice() override;

  void enter() override {}
  ThreadState scope_begin() override { return {}; }
  void scope_end(ThreadState) noexcept override {}
  uint8_t* allocate_pinned(size_t bytes) override;
  void free_pinned(uint8_t* memory) noexcept override;
  uint8_t* allocate(size_t bytes) override;
  void free(uint8_t* memory) noexcept override;
  Stream make_stream() override;
  void destroy_stream(Stream stream) noexcept override;
  Event make_event() override;
  void destroy_event(Event event) noexcept override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  bool happened(Event event) override;
  void synchronize(Event event) override;
  void copy_to_device(uint8_t* to, const uint8_t* pinned, size_t bytes, Stream stream) override;
  void fuse(const FuseLaunch& launch, Stream stream) override;
  std::vector<float> time_fuse(const FuseLaunch& launch, int repeats, Stream stream) override;
  std::vector<float> time_copy(size_t bytes, int repeats, Stream stream) override;

  /// Number of pieces of memory, streams and events that are not freed yet. Any thread.
  size_t alive() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
