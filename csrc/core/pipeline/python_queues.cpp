// Puts samples into the queues for Python, and times them.
#include "core/pipeline/python_queues.h"

#include <stdexcept>
#include <utility>

#include "core/base/clock.h"

namespace headrace {

template <class Make>
PythonJob PythonQueues::call_next(const std::shared_ptr<Batch>& batch, int sample, size_t from, Make make) {
  auto maker = makers_.take([this] { return std::make_unique<SegmentMaker>(kernels_); });
  RgbxImage image = make(*maker);
  makers_.give(std::move(maker));
  const size_t at = options_.recipe.call_after(from);
  return {batch, sample, std::move(image.pixels), "", at + 1, options_.recipe.steps[at].call, image.size};
}

PythonJob PythonQueues::call_with_file(const std::shared_ptr<Batch>& batch, int sample, std::span<const uint8_t> bytes,
                                       const double* draws) {
  Size& opened = batch->sizes[static_cast<size_t>(sample)];
  return call_next(batch, sample, 0, [&](SegmentMaker& maker) {
    return maker.from_file(bytes, draws, options_, opened, batch->entry_points.get());
  });
}

PythonJob PythonQueues::call_with_pixels(const std::shared_ptr<Batch>& batch, int sample, size_t from,
                                         const RawImage& image, const double* draws) {
  return call_next(batch, sample, from,
                   [&](SegmentMaker& maker) { return maker.from_pixels(image, draws, options_, from); });
}

std::optional<PythonJob> PythonQueues::next(PythonLane& lane, std::chrono::milliseconds patience) {
  const int64_t begin = recorder_.recording() && patience.count() > 0 ? now_ns() : 0;
  std::optional<PythonJob> job = lane.pop(patience);
  if (begin != 0) recorder_.add("idle", begin, now_ns());
  return job;
}

std::shared_ptr<Batch> PythonQueues::take_back(PythonJob& job, int64_t ns) {
  if (job.batch == nullptr) throw std::logic_error("this job is finished already");
  Time& time = job.call < 0 ? pillow_time_ : call_time_;
  time.items.fetch_add(1, std::memory_order_relaxed);
  time.ns.fetch_add(ns, std::memory_order_relaxed);
  time.durations.add_shared(ns);
  if (ns > 0 && recorder_.recording()) {
    const int64_t end = now_ns();
    recorder_.add(job.call < 0 ? options_.decoder : "python", end - ns, end);
  }
  return std::exchange(job.batch, nullptr);
}

std::vector<StageReport> PythonQueues::stats() const {
  const auto report = [](const char* name, const Time& time) {
    StageReport one{name, time.items.load(), time.ns.load()};
    add_counts(time.durations, one.durations);
    return one;
  };
  std::vector<StageReport> stages{report(options_.decoder, pillow_time_)};
  if (has_calls_) stages.push_back(report("python", call_time_));
  return stages;
}

void PythonQueues::close() {
  pillow.close();
  calls.close();
}

}  // namespace headrace
