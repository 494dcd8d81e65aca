// A device made of host threads: a stream is a thread, device memory is memory of its own. What a GPU would do wrong
// for want of a copy, an event or a wait goes wrong here too, where sanitizers see it.
#pragma once

#include <memory>

#include "gpu/device/device.h"

namespace headrace {

class EmulatedDevice : public Device {
 public:
  /// What fresh memory is full of: what nobody wrote shows.
  static constexpr uint8_t kPoison = 0xA5;

  EmulatedDevice();
  ~EmulatedDevice() override;  // waits for its streams

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

  /// Pieces of memory, streams and events that are there now.
  size_t alive() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
