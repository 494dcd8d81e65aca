// Runs samples through the stages on the workers' threads and counts the samples that are left.
#include "core/pipeline/pipeline_state.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/base/platform/this_thread.h"
#include "core/pipeline/workers/cpu_backend.h"
#include "core/pipeline/workers/sized_backend.h"
#include "core/pipeline/workers/timed_decoder.h"

namespace headrace {
namespace {

const Kernels& kernels_of(const PipelineOptions& options) {
  return options.kernels != nullptr ? *options.kernels : kernels();
}

std::shared_ptr<Backend> make_backend(const PipelineOptions& options) {
  if (options.backend != nullptr) return options.backend;
  if (options.recipe.varies()) return std::make_shared<SizedBackend>(options, kernels_of(options));
  return std::make_shared<CpuBackend>(options, kernels_of(options), options.slots_kept);
}

}  // namespace

Pipeline::State::State(PipelineOptions given)
    : options(std::move(given)),
      records(options.recorder != nullptr ? options.recorder : std::make_shared<Recorder>()),
      backend(make_backend(options)),
      device(backend->device_side()),
      python(options, kernels_of(options), *records),
      wanted(options.threads) {
  try {
    if (device != nullptr) device->start(*this);
    if (options.threads == 0) workers.push_back(new_worker());
    start_threads(options.threads);
  } catch (...) {
    queue.close();  // the threads that did start have to return before their state is destroyed
    backend->retire();
    throw;
  }
}

void Pipeline::State::start_threads(int count) {
  // A thread uses its worker while others may be added, so it must not look it up in the list.
  while (workers.size() < static_cast<size_t>(count)) workers.push_back(new_worker());
  std::vector<SampleWorker*> of_threads;
  for (const auto& worker : workers) of_threads.push_back(worker.get());
  threads.start(std::max(0, count - threads.size()), [this, of_threads](int i) {
    records->name_thread("headrace worker", i);
    work(*of_threads[static_cast<size_t>(i)], i);
  });
}

void Pipeline::State::resize(int count) {
  if (count < 1) throw std::invalid_argument("a pipeline with threads keeps at least one");
  const std::lock_guard lock(crew);
  if (options.threads == 0) throw std::logic_error("a pipeline without threads gets none");
  {
    const std::lock_guard also(mutex);
    if (closed) return;  // threads that are added after this find the queue closed
  }
  start_threads(count);
  wanted = count;
  queue.want(count);
}

std::unique_ptr<SampleWorker> Pipeline::State::new_worker() {
  auto worker = backend->make_worker();
  worker->stats.recorder = records.get();
  return worker;
}

void Pipeline::State::work(SampleWorker& worker, int number) {
  worker.stats.thread.store(this_thread_id(), std::memory_order_relaxed);
  if (device != nullptr) device->bind_thread();
  SampleQueue::Task task;
  while (queue.stand_by(task, number)) {
    worker.stats.begin_idle();
    const bool open = queue.pop(task, [this] { return device != nullptr && device->stealable(); }, number);
    worker.stats.end_idle();
    if (!open) return;
    if (task.batch != nullptr) {
      make(worker, task.batch, task.sample);
    } else {
      steal(worker);
    }
  }
}

void Pipeline::State::make(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample) {
  const int64_t row = batch->rows[static_cast<size_t>(sample)];
  const Blob blob = batch->blobs->at(row);
  if (blob.raw.data != nullptr) return make_from_pixels(worker, batch, sample, blob.raw);
  if (blob.columns != nullptr) return gather(worker, batch, sample, blob);
  if (worker.reads_files()) return make_from_path(worker, batch, sample, blob.path);
  if (read_ahead.active()) prepare_later(batch, sample);
  const bool watched = ReadAhead::watched(row), mapped = blob.data != nullptr;
  const int64_t waits = watched ? waits_of_this_thread() : 0;
  std::span<const uint8_t> bytes;
  bool handed_on = false;
  // Not counted as a writer: cancel() must not wait for a file system that does not answer.
  const bool known = batch->attempt(sample, Stage::kRead, [&] {
    try {
      bytes = worker.read(blob, batch->cancelled);
    } catch (const NeedsPillow& verdict) {
      python.pillow.push({.batch = batch, .sample = sample, .reason = verdict.what(), .path = blob.path});
      handed_on = true;
    }
  });
  if (watched && !mapped) read_ahead.saw(waits_of_this_thread() > waits);
  if (handed_on) return;
  if (!known) return done(batch);
  make_from_file(worker, batch, sample, bytes, true);
  // Bytes in mapped memory are read from the disk only when they are decoded.
  if (watched && mapped) read_ahead.saw(waits_of_this_thread() > waits);
}

void Pipeline::State::prepare_later(const std::shared_ptr<Batch>& batch, int sample) {
  const SampleQueue::Task later = queue.after({batch, sample}, ReadAhead::kDistance);
  if (later.batch == nullptr) return;
  const int64_t row = later.batch->rows[static_cast<size_t>(later.sample)];
  if (!ReadAhead::watched(row)) prepare(later.batch->blobs->at(row));
}

void Pipeline::State::make_from_pixels(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample,
                                       const RawImage& image) {
  worker.stats.add(Clock::kRead);
  batch->sizes[static_cast<size_t>(sample)] = image.size;
  bool handed_on = false;
  const bool not_cancelled = guarded(*batch, sample, Stage::kResize, [&] {
    StageTime resize(worker.stats, Clock::kResize, sample % kTimedShare == 0 || worker.stats.recording());
    std::optional<PythonJob> call = make_from_step(worker, batch, sample, 0, image);
    resize.end();
    handed_on = hand_on(std::move(call));
  });
  if (not_cancelled && !handed_on) done(batch);
}

void Pipeline::State::gather(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample, const Blob& blob) {
  const int64_t begin = now_ns();
  const bool not_cancelled =
      guarded(*batch, sample, Stage::kRead, [&] { worker.gather(*blob.columns, blob.row, *batch, sample); });
  worker.stats.add(Clock::kRead, begin, now_ns());
  if (not_cancelled) done(batch);
}

void Pipeline::State::make_from_path(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample,
                                     const char* path) {
  bool handed_on = false;
  const bool not_cancelled = guarded(*batch, sample, Stage::kRead, [&] {
    std::optional<std::string> why = worker.make_from_file(path, draws(*batch, sample), *batch, sample);
    if (!why) return;
    python.pillow.push({.batch = batch, .sample = sample, .reason = std::move(*why), .path = path});
    handed_on = true;
  });
  if (not_cancelled && !handed_on) done(batch);
}

void Pipeline::State::make_from_file(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample,
                                     std::span<const uint8_t> bytes, bool may_offload) {
  bool handed_on = false;
  const bool not_cancelled = guarded(*batch, sample, Stage::kDecode, [&] {
    try {
      if (is_png(bytes)) {
        handed_on = hand_on(make_from_png(worker, batch, sample, bytes));
      } else if (python.has_calls()) {
        const int64_t begin = now_ns();
        PythonJob call = python.call_with_file(batch, sample, bytes, draws(*batch, sample));
        worker.stats.add(Clock::kHeader);
        worker.stats.add(Clock::kDecode, begin, now_ns());
        handed_on = hand_on(std::move(call));
      } else {
        handed_on = !worker.make(bytes, draws(*batch, sample), batch, sample, may_offload);
      }
    } catch (const NeedsPillow& verdict) {
      python.pillow.push({batch, sample, {bytes.begin(), bytes.end()}, verdict.what()});
      handed_on = true;
    }
  });
  if (not_cancelled && !handed_on) done(batch);
}

std::optional<PythonJob> Pipeline::State::make_from_png(SampleWorker& worker, const std::shared_ptr<Batch>& batch,
                                                        int sample, std::span<const uint8_t> bytes) {
  const bool timed = sample % kTimedShare == 0 || worker.stats.recording();
  const int64_t begin = timed ? now_ns() : 0;
  const PngHeader header = plain_png_header(bytes, options);
  const int64_t parsed = timed ? now_ns() : 0;
  const RawImage image = worker.decode(header, options.indices ? PngWanted::kIndices : PngWanted::kRgb);
  const int64_t decoded = timed ? now_ns() : 0;
  batch->sizes[static_cast<size_t>(sample)] = image.size;
  std::optional<PythonJob> call = make_from_step(worker, batch, sample, 0, image);
  if (timed) {
    worker.stats.add(Clock::kHeader, begin, parsed);
    worker.stats.add(Clock::kDecode, parsed, decoded);
    worker.stats.add(Clock::kResize, decoded, now_ns());
  }
  return call;
}

std::optional<PythonJob> Pipeline::State::make_from_step(SampleWorker& worker, const std::shared_ptr<Batch>& batch,
                                                         int sample, size_t from, const RawImage& image) {
  if (python.has_call_from(from)) return python.call_with_pixels(batch, sample, from, image, draws(*batch, sample));
  worker.make_from_pixels(image, draws(*batch, sample), *batch, sample);
  return std::nullopt;
}

bool Pipeline::State::hand_on(std::optional<PythonJob> call) {
  if (call) python.calls.push(std::move(*call));
  return call.has_value();
}

bool Pipeline::State::steal(SampleWorker& worker) {
  if (device == nullptr) return false;
  const std::optional<StolenSample> one = device->steal();
  if (one) make_from_file(worker, one->batch, one->sample, one->bytes, false);
  return one.has_value();
}

void Pipeline::State::done(const std::shared_ptr<Batch>& batch) {
  if (batch->remaining.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (device != nullptr) {
    device->complete(batch);
  } else {
    batch_ready(*batch);
  }
}

void Pipeline::State::batch_ready(Batch& batch) {
  batch.ready.store(true, std::memory_order_release);
  wake();
}

void Pipeline::State::end_writing(Batch& batch) {
  if (batch.writers.fetch_sub(1) == 1 && batch.cancelled.load()) wake();
}

void Pipeline::State::wake() {
  {
    // A waiting thread is now either before its check or asleep: the notification cannot fall between the two.
    const std::lock_guard lock(mutex);
  }
  changed.notify_all();
}

const double* Pipeline::State::draws(const Batch& batch, int sample) const {
  return batch.draws.data() + static_cast<size_t>(sample) * static_cast<size_t>(options.recipe.draws);
}

std::shared_ptr<Batch> Pipeline::State::take_back(PythonJob& job, int64_t ns) {
  check_process();
  return python.take_back(job, ns);
}

void Pipeline::State::check_process() const {
  if (fork.forked()) {
    throw std::logic_error(
        "this loader's threads were started before the process forked and do not exist in the child; "
        "make a new iterator, iter(loader), in the child");
  }
}

}  // namespace headrace
