// Records time spans of threads for a timeline. Each thread has a buffer of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace headrace {

struct TimeSpan {
  const char* name = nullptr;  // has static storage
  int64_t begin_ns = 0, end_ns = 0;
  int64_t items = 1;
};

/// The spans of one thread, in the order in which they ended.
struct ThreadSpans {
  std::string thread;          // empty: name_thread was not called
  int64_t tid = 0;             // id in the operating system
  std::deque<TimeSpan> spans;  // grows without moving its elements
};

/// Every method may be called from any thread, at any time.
///
/// Note [one recorder]: two modules contain copies of this code, each with thread_local buffers of its own. The methods
/// that use these are virtual, so every caller runs the code of the module that made the recorder.
class Recorder {
 public:
  Recorder() = default;
  virtual ~Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Begins a recording of up to `most` spans. False: one is running already.
  bool start(int64_t most);
  /// Ends the recording and returns its spans. Spans that have not ended are omitted; spans that began before the
  /// recording begin with it.
  std::vector<ThreadSpans> stop();
  /// Number of spans of the last recording that were dropped for lack of room or memory.
  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

  bool recording() const { return recording_.load(std::memory_order_relaxed) != 0; }
  /// Records a span of the calling thread; times are those of now_ns(). `name`: has static storage.
  void add(const char* name, int64_t begin_ns, int64_t end_ns, int64_t items = 1) {
    if (recording()) append({name, begin_ns, end_ns, items});
  }
  /// Names the calling thread in recordings, starting with the next one: "name", or "name number" if there is a number.
  virtual void name_thread(const char* name, int number = -1) noexcept;

 private:
  struct Track;
  struct Own;
  static Own& own();
  virtual void append(const TimeSpan& span) noexcept;
  std::shared_ptr<Track> enrol(uint64_t recording, const std::string& thread);

  std::atomic<uint64_t> recording_{0};  // number of the current one, 0: none; written under mutex_
  std::atomic<int64_t> room_{0};        // spans that still fit; negative once some did not
  std::atomic<int64_t> dropped_{0};
  std::mutex mutex_;
  std::vector<std::shared_ptr<Track>> tracks_;  // guarded by mutex_, as is started_ns_
  int64_t started_ns_ = 0;
};

}  // namespace headrace
