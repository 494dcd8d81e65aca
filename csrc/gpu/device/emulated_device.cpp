// A device emulated on host threads. A stream is a queue with a thread; work on the default stream runs in the calling
// thread.
#include "gpu/device/emulated_device.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "gpu/device/emulation.h"

namespace headrace {
namespace {

constexpr size_t kAlignment = 256;

// An event. Each recording has a number, its mark; the event has happened once the last mark is reached.
struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;  // guarded by mutex

  uint64_t record() {
    const std::lock_guard lock(mutex);
    return ++recorded;
  }
  uint64_t last() {
    const std::lock_guard lock(mutex);
    return recorded;
  }
  void reach(uint64_t mark) {
    {
      const std::lock_guard lock(mutex);
      reached = mark > reached ? mark : reached;
    }
    changed.notify_all();
  }
  void wait_for(uint64_t mark) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= mark; });
  }
};

class StreamThread {
 public:
  StreamThread() : thread_([this] { run(); }) {}
  ~StreamThread() {
    put(nullptr);
    thread_.join();
  }
  void put(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    changed_.notify_one();
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !queue_.empty(); });
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      if (work == nullptr) return;
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;  // guarded by mutex_
  std::thread thread_;
};

using SharedEvent = std::shared_ptr<EventState>;

// The event of a handle that make_event returned.
SharedEvent& event_of(Event event) { return *reinterpret_cast<SharedEvent*>(event); }

void put(Stream stream, std::function<void()> work) {
  if (stream == Stream{}) return work();
  reinterpret_cast<StreamThread*>(stream)->put(std::move(work));
}

// Times runs of `work` on the stream, after the work that is already on it.
template <class Work>
std::vector<float> timed(int repeats, Stream stream, Work work) {
  std::vector<float> ms(static_cast<size_t>(repeats));
  const auto end = std::make_shared<EventState>();
  const uint64_t mark = end->record();
  put(stream, [&ms, &work, end, mark] {
    for (float& one : ms) {
      const auto begin = std::chrono::steady_clock::now();
      work();
      one = std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - begin).count();
    }
    end->reach(mark);
  });
  end->wait_for(mark);
  return ms;
}

}  // namespace

struct EmulatedDevice::State {
  std::atomic<size_t> alive{0};

  uint8_t* allocate(size_t bytes) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, EmulatedDevice::kPoison, bytes);
    ++alive;
    return static_cast<uint8_t*>(memory);
  }
  void free(uint8_t* memory) noexcept {
    --alive;
    std::free(memory);
  }
};

EmulatedDevice::EmulatedDevice() : state_(std::make_unique<State>()) {}
EmulatedDevice::~EmulatedDevice() = default;

uint8_t* EmulatedDevice::allocate_pinned(size_t bytes) { return state_->allocate(bytes); }
void EmulatedDevice::free_pinned(uint8_t* memory) noexcept { state_->free(memory); }
uint8_t* EmulatedDevice::allocate(size_t bytes) { return state_->allocate(bytes); }
void EmulatedDevice::free(uint8_t* memory) noexcept { state_->free(memory); }

Stream EmulatedDevice::make_stream() {
  ++state_->alive;
  return static_cast<Stream>(reinterpret_cast<uintptr_t>(new StreamThread()));
}

void EmulatedDevice::destroy_stream(Stream stream) noexcept {
  --state_->alive;
  delete reinterpret_cast<StreamThread*>(stream);
}

Event EmulatedDevice::make_event() {
  ++state_->alive;
  return static_cast<Event>(reinterpret_cast<uintptr_t>(new SharedEvent(std::make_shared<EventState>())));
}

void EmulatedDevice::destroy_event(Event event) noexcept {
  --state_->alive;
  delete &event_of(event);
}

void EmulatedDevice::record(Event event, Stream stream) {
  put(stream, [shared = event_of(event), mark = event_of(event)->record()] { shared->reach(mark); });
}

void EmulatedDevice::wait(Stream stream, Event event) {
  put(stream, [shared = event_of(event), mark = event_of(event)->last()] { shared->wait_for(mark); });
}

bool EmulatedDevice::happened(Event event) {
  EventState& state = *event_of(event);
  const std::lock_guard lock(state.mutex);
  return state.reached >= state.recorded;
}

void EmulatedDevice::synchronize(Event event) {
  const SharedEvent shared = event_of(event);
  shared->wait_for(shared->last());
}

void EmulatedDevice::copy_to_device(uint8_t* to, const uint8_t* pinned, size_t bytes, Stream stream) {
  put(stream, [=] { std::memcpy(to, pinned, bytes); });
}

void EmulatedDevice::fuse(const FuseLaunch& launch, Stream stream) {
  put(stream, [launch] { emulate(launch); });
}

std::vector<float> EmulatedDevice::time_fuse(const FuseLaunch& launch, int repeats, Stream stream) {
  return timed(repeats, stream, [&] { emulate(launch); });
}

std::vector<float> EmulatedDevice::time_copy(size_t bytes, int repeats, Stream stream) {
  const std::vector<uint8_t> from(bytes);
  std::vector<uint8_t> to(bytes);
  return timed(repeats, stream, [&] { std::memcpy(to.data(), from.data(), bytes); });
}

size_t EmulatedDevice::alive() const { return state_->alive; }

}  // namespace headrace
