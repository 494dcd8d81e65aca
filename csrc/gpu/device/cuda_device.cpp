// CUDA's runtime API as a Device; every call is checked.
#include "gpu/device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <stdexcept>

#include "core/base/fork_guard.h"
#include "gpu/device/cuda_fuse.h"

namespace headrace {
namespace {

void check(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears it: the next call must not report it again
  if (error == cudaErrorMemoryAllocation) throw OutOfDeviceMemory("no memory left to " + what);
  throw std::runtime_error("CUDA refused to " + what + ": " + cudaGetErrorString(error));
}

cudaStream_t handle(Stream stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t handle(Event event) { return reinterpret_cast<cudaEvent_t>(event); }

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) { const DeviceScope exists(*this); }

  void enter() override {
    check(cudaSetDevice(index_), "make the GPU current");
    // Relaxed: calls in this thread do not break a graph capture in another one.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode), "leave stream captures alone");
  }
  ThreadState scope_begin() override {
    // The device is set first and restored last: the other calls start CUDA on the current device, which costs memory.
    ThreadState before;
    check(cudaGetDevice(&before.device), "name the current GPU");
    if (before.device != index_) check(cudaSetDevice(index_), "make the GPU current");
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode), "leave stream captures alone");
    before.capture_mode = static_cast<int>(mode);
    return before;
  }
  void scope_end(ThreadState before) noexcept override {
    auto mode = static_cast<cudaStreamCaptureMode>(before.capture_mode);
    cudaThreadExchangeStreamCaptureMode(&mode);
    if (before.device != index_) cudaSetDevice(before.device);
  }

  uint8_t* allocate_pinned(size_t bytes) override {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "pin " + std::to_string(bytes) + " bytes");
    return static_cast<uint8_t*>(memory);
  }
  void free_pinned(uint8_t* memory) noexcept override {
    give_back([&] { cudaFreeHost(memory); });
  }

  uint8_t* allocate(size_t bytes) override {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "allocate " + std::to_string(bytes) + " bytes");
    return static_cast<uint8_t*>(memory);
  }
  void free(uint8_t* memory) noexcept override {
    give_back([&] { cudaFree(memory); });
  }

  Stream make_stream() override {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
    return static_cast<Stream>(reinterpret_cast<uintptr_t>(stream));
  }
  void destroy_stream(Stream stream) noexcept override {
    give_back([&] { cudaStreamDestroy(handle(stream)); });
  }
  Event make_event() override {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync), "make an event");
    return static_cast<Event>(reinterpret_cast<uintptr_t>(event));
  }
  void destroy_event(Event event) noexcept override {
    give_back([&] { cudaEventDestroy(handle(event)); });
  }

  void record(Event event, Stream stream) override {
    check(cudaEventRecord(handle(event), handle(stream)), "record an event");
  }
  void wait(Stream stream, Event event) override {
    check(cudaStreamWaitEvent(handle(stream), handle(event), 0), "wait for an event");
  }
  bool happened(Event event) override {
    const cudaError_t state = cudaEventQuery(handle(event));
    if (state == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(state, "look at an event");
    return true;
  }
  void synchronize(Event event) override { check(cudaEventSynchronize(handle(event)), "finish its work"); }

  void copy_to_device(uint8_t* to, const uint8_t* pinned, size_t bytes, Stream stream) override {
    check(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, handle(stream)), "copy a batch");
  }
  void fuse(const FuseLaunch& launch, Stream stream) override {
    check(cuda_fuse(launch, handle(stream)), "launch the kernel");
  }

  std::vector<float> time_fuse(const FuseLaunch& launch, int repeats, Stream stream) override {
    return timed(repeats, stream, [&] { fuse(launch, stream); });
  }
  std::vector<float> time_copy(size_t bytes, int repeats, Stream stream) override {
    const std::unique_ptr<uint8_t, Freed> from(allocate(bytes)), to(allocate(bytes));
    check(cudaMemsetAsync(from.get(), 0x5A, bytes, handle(stream)), "fill memory");
    return timed(repeats, stream, [&] {
      check(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, handle(stream)), "copy");
    });
  }

 private:
  // Makes the GPU current for the call: otherwise CUDA would start on the thread's current GPU. A lost GPU has lost its
  // handles; in a forked child they belong to the parent.
  template <class Call>
  void give_back(Call call) noexcept {
    if (fork_.forked()) return;
    try {
      const DeviceScope current(*this);
      call();
    } catch (const std::runtime_error&) {
    }
  }

  struct Freed {
    void operator()(uint8_t* memory) const { cudaFree(memory); }
  };
  class TimedEvent {
   public:
    TimedEvent() { check(cudaEventCreate(&event_), "make an event"); }
    ~TimedEvent() { cudaEventDestroy(event_); }
    TimedEvent(const TimedEvent&) = delete;
    TimedEvent& operator=(const TimedEvent&) = delete;
    cudaEvent_t get() const { return event_; }

   private:
    cudaEvent_t event_ = nullptr;
  };

  template <class Work>
  std::vector<float> timed(int repeats, Stream stream, Work work) {
    constexpr size_t kMoreThanCache = size_t{256} << 20;
    const std::unique_ptr<uint8_t, Freed> other(allocate(kMoreThanCache));
    const TimedEvent begin, end;
    std::vector<float> ms(static_cast<size_t>(repeats));
    work();  // the first launch loads the code
    for (float& one : ms) {
      check(cudaMemsetAsync(other.get(), 0, kMoreThanCache, handle(stream)), "fill memory");
      check(cudaEventRecord(begin.get(), handle(stream)), "record an event");
      work();
      check(cudaEventRecord(end.get(), handle(stream)), "record an event");
      check(cudaEventSynchronize(end.get()), "finish its work");
      check(cudaEventElapsedTime(&one, begin.get(), end.get()), "tell the time");
    }
    return ms;
  }

  const int index_;
  const ForkGuard fork_;  // CUDA does not exist in a forked child
};

}  // namespace

std::shared_ptr<Device> cuda_device(int index) { return std::make_shared<CudaDevice>(index); }

std::string cuda_trouble() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return std::string("CUDA does not start: ") + cudaGetErrorString(error);
  }
  return count > 0 ? "" : "CUDA finds no GPU";
}

}  // namespace headrace
