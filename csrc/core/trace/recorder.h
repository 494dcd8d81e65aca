// Records what threads did and when: spans for a timeline, each thread into a buffer of its own.
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
  const char* name = nullptr;  // of static storage
  int64_t begin_ns = 0, end_ns = 0;
  int64_t items = 1;
};

/// In the order in which they ended.
struct ThreadSpans {
  std::string thread;          // empty: it has told no name
  int64_t tid = 0;             // the system's number
  std::deque<TimeSpan> spans;  // grows without moving what is there
};

/// Every method may be called from any thread, at any time.
///
/// Note [one recorder]: two modules hold copies of this code, and would keep a thread's buffer twice. What looks at the
/// thread is virtual: whoever calls it runs the code of the module that made the recorder.
class Recorder {
 public:
  Recorder() = default;
  virtual ~Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Begins a recording of up to `most` spans. False: one is going on.
  bool start(int64_t most);
  /// Ends the recording. Spans that have not ended are not in it, and those that began before it begin with it.
  std::vector<ThreadSpans> stop();
  /// Spans of the last recording for which there was no room.
  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

  bool recording() const { return recording_.load(std::memory_order_relaxed) != 0; }
  /// `name` is of static storage.
  void add(const char* name, int64_t begin_ns, int64_t end_ns, int64_t items = 1) {
    if (recording()) append({name, begin_ns, end_ns, items});
  }
  /// What the calling thread is called in recordings, from its next one on.
  virtual void name_thread(std::string name);

 private:
  struct Track;
  struct Own;
  static Own& own();
  virtual void append(const TimeSpan& span) noexcept;
  std::shared_ptr<Track> enrol(uint64_t recording, const std::string& thread);

  std::atomic<uint64_t> recording_{0};  // its number, 0: none; written under mutex_
  std::atomic<int64_t> room_{0};        // for so many more spans; below 0 where there was none
  std::atomic<int64_t> dropped_{0};
  std::mutex mutex_;
  std::vector<std::shared_ptr<Track>> tracks_;  // guarded by mutex_, as is started_ns_
  int64_t started_ns_ = 0;
};

}  // namespace headrace
