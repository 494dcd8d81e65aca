// Binds the recorder of this process, and converts its spans to arrays.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/convert.h"
#include "bind/core/process_recorder.h"
#include "bind/unlocked.h"
#include "core/base/clock.h"
#include "core/base/fork_guard.h"
#include "core/base/trace/durations.h"

namespace py = pybind11;

namespace headrace {

namespace {

// The recorder of one process. Never freed: threads may outlive static objects. A forked child makes its own, because
// the locks of its parent's may stay held.
struct Ours {
  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
  ForkGuard fork;
  std::mutex mutex;
  std::set<std::string> names;  // guarded by mutex; of spans, which live as long as the process
};

Ours& ours() {
  static std::atomic<Ours*> newest{new Ours};
  Ours* now = newest.load();
  while (now->fork.forked()) {
    auto made = std::make_unique<Ours>();
    if (newest.compare_exchange_strong(now, made.get())) return *made.release();
  }
  return *now;
}

}  // namespace

std::shared_ptr<Recorder> process_recorder() { return ours().recorder; }

namespace {

void start(int64_t most) {
  if (!process_recorder()->start(most)) {
    throw std::runtime_error("a recording is going on in this process already");
  }
}

// The spans of a thread as arrays: (thread's name, tid, names of stages, number of each span's stage, begin, end,
// items), times in nanoseconds of now_ns().
py::tuple span_arrays(const ThreadSpans& of) {
  const auto count = static_cast<py::ssize_t>(of.spans.size());
  std::vector<std::string_view> stages;  // compared as text: the two modules have the same names at different addresses
  py::array_t<int64_t> stage(count), begin(count), end(count), items(count);
  py::ssize_t i = 0;
  for (const TimeSpan& span : of.spans) {
    auto known = std::find(stages.begin(), stages.end(), std::string_view(span.name));
    if (known == stages.end()) known = stages.insert(known, std::string_view(span.name));
    stage.mutable_at(i) = known - stages.begin();
    begin.mutable_at(i) = span.begin_ns;
    end.mutable_at(i) = span.end_ns;
    items.mutable_at(i) = span.items;
    ++i;
  }
  const std::vector<std::string> names(stages.begin(), stages.end());
  return py::make_tuple(of.thread, of.tid, names, stage, begin, end, items);
}

py::tuple stop() {
  const std::shared_ptr<Recorder> recorder = process_recorder();
  std::vector<ThreadSpans> spans;
  {
    const Unlocked unlocked;
    spans = recorder->stop();
  }
  py::list threads;
  for (ThreadSpans& one : spans) {
    threads.append(span_arrays(one));
    one.spans.clear();  // now, so that the spans and their arrays do not all exist at once
  }
  return py::make_tuple(threads, recorder->dropped());
}

void add(const std::string& name, int64_t begin_ns, int64_t end_ns) {
  Ours& process = ours();
  if (!process.recorder->recording()) return;
  const char* kept = nullptr;
  {
    const std::lock_guard lock(process.mutex);
    kept = process.names.insert(name).first->c_str();
  }
  process.recorder->add(kept, begin_ns, end_ns);
}

}  // namespace

void bind_recorder(py::module_& module) {
  module.def("now_ns", &now_ns, "The time in all spans, which is time.perf_counter_ns().");
  module.def("duration_bounds", [] {
    std::vector<int64_t> bounds;
    for (size_t i = 0; i < kDurationBuckets; ++i) bounds.push_back(duration_bound(i));
    return bounds;
  });
  module.def("start_recording", &start, py::arg("most"), "Raises RuntimeError where a recording is going on.");
  module.def("stop_recording", &stop,
             "Per thread (name, tid, stages, and int64 arrays: stage, begin and end in ns, items); and how many spans\n"
             "there was no room for.");
  module.def("recording", [] { return process_recorder()->recording(); });
  module.def("add_span", &add, py::arg("name"), py::arg("begin_ns"), py::arg("end_ns"),
             "Adds a span of the calling thread. Does nothing while no recording runs.");
  module.def("name_thread", [](const std::string& name) { process_recorder()->name_thread(name.c_str()); });
}

}  // namespace headrace
