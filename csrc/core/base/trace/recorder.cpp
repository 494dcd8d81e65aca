// Each thread fills a buffer of its own, which lives until the recording ends, even if the thread ends before.
#include "core/base/trace/recorder.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/clock.h"
#include "core/base/platform/this_thread.h"

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
    said.tid = this_thread_id();
  }

  const int64_t started_ns;
  std::mutex mutex;   // contended only at the end of a recording
  bool over = false;  // guarded by mutex, like `said`
  ThreadSpans said;
};

// State of one thread. Numbers of recordings are never reused, so `recording` tells whether `track` is current.
struct Recorder::Own {
  uint64_t recording = 0;
  std::shared_ptr<Track> track;
  std::string name;
};

Recorder::Own& Recorder::own() {
  thread_local Own mine;
  return mine;
}

void Recorder::name_thread(const char* name, int number) noexcept {
  try {
    own().name = number < 0 ? name : std::string(name) + " " + std::to_string(number);
  } catch (const std::bad_alloc&) {  // the timeline then lacks the name, but not the thread
  }
}

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
  const std::lock_guard lock(mutex_);  // until the end: a late append() must not use the next recording's room
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

// Adds a track for the calling thread. Null: the recording has ended.
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
    // No thread reserves room in advance, since the others would lack it. Spans are at least microseconds apart.
    if (room_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    track.said.spans.push_back(span);
    TimeSpan& kept = track.said.spans.back();
    kept.begin_ns = std::max(kept.begin_ns, track.started_ns);
  } catch (const std::bad_alloc&) {  // drops the span: a sample must not fail because of a timeline
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace headrace
