// Buffers that only their thread fills, and that live until the recording ends, whether or not the thread does.
#include "core/trace/recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/clock.h"

namespace headrace {
namespace {

uint64_t next_recording() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

struct Recorder::Track {
  Track(std::string name, int64_t began) : started_ns(began) {
    said.thread = std::move(name);
    said.tid = syscall(SYS_gettid);
  }

  const int64_t started_ns;
  std::mutex mutex;   // nobody waits for it but at the end of a recording
  bool over = false;  // guarded by mutex, as is said
  ThreadSpans said;
};

// Of the calling thread. A recording's number is never used again, so it tells whether the track is of this one.
struct Recorder::Own {
  uint64_t recording = 0;
  std::shared_ptr<Track> track;
  std::string name;
};

Recorder::Own& Recorder::own() {
  thread_local Own mine;
  return mine;
}

void Recorder::name_thread(std::string name) { own().name = std::move(name); }

bool Recorder::start(int64_t most) {
  const std::lock_guard lock(mutex_);
  if (recording_.load() != 0) return false;
  room_.store(most);
  dropped_.store(0);
  started_ns_ = now_ns();
  recording_.store(next_recording());
  return true;
}

std::vector<ThreadSpans> Recorder::stop() {
  const std::lock_guard lock(mutex_);  // to the end: no late thread may take the next recording's room
  recording_.store(0);
  const auto tracks = std::exchange(tracks_, {});
  std::vector<ThreadSpans> all;
  for (const auto& track : tracks) {
    const std::lock_guard track_lock(track->mutex);
    track->over = true;
    all.push_back(std::exchange(track->said, {}));
  }
  return all;
}

// Null: the recording has ended.
std::shared_ptr<Recorder::Track> Recorder::enrol(uint64_t recording, const std::string& thread) {
  const std::lock_guard lock(mutex_);
  if (recording_.load() != recording) return nullptr;
  tracks_.push_back(std::make_shared<Track>(thread, started_ns_));
  return tracks_.back();
}

void Recorder::append(const TimeSpan& span) noexcept {
  const uint64_t recording = recording_.load();
  if (recording == 0) return;
  try {
    Own& mine = own();
    if (mine.recording != recording) {
      mine.track = enrol(recording, mine.name);
      if (mine.track == nullptr) return;
      mine.recording = recording;
    }
    Track& track = *mine.track;
    const std::lock_guard lock(track.mutex);
    if (track.over || span.end_ns < track.started_ns) return;
    // One by one: what threads claimed ahead would be missing to the others. Spans are microseconds apart at least.
    if (room_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    track.said.spans.push_back(span);
    TimeSpan& kept = track.said.spans.back();
    kept.begin_ns = std::max(kept.begin_ns, track.started_ns);
  } catch (const std::bad_alloc&) {  // a timeline is not worth a sample
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace headrace
