// Runs samples through the stages on the workers' threads and keeps count of what is still to come.
#include "core/pipeline/pipeline.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "core/base/fork_guard.h"
#include "core/base/pool.h"
#include "core/base/thread_pool.h"
#include "core/making/cpu_backend.h"
#include "core/pipeline/python_desk.h"
#include "core/pipeline/sample_queue.h"

namespace headrace {
namespace {

constexpr int kTimedShare = 16;  // of decoded images one in so many is timed, as in sample_maker.cpp

std::shared_ptr<Backend> backend_of(const PipelineOptions& options) {
  if (options.backend != nullptr) return options.backend;
  const Kernels& best = options.kernels != nullptr ? *options.kernels : kernels();
  return std::make_shared<CpuBackend>(options, best, options.slots_kept);
}

}  // namespace

struct Pipeline::State final : PipelineHooks {
  explicit State(PipelineOptions given)
      : options(std::move(given)),
        records(options.recorder != nullptr ? options.recorder : std::make_shared<Recorder>()),
        backend(backend_of(options)),
        python(options, options.kernels != nullptr ? *options.kernels : kernels(), *records),
        workers(static_cast<size_t>(std::max(1, options.threads))) {
    try {
      backend->attach(*this);
      for (auto& worker : workers) worker = backend->worker();
      threads.start(options.threads, [this](int i) {
        records->name_thread("headrace worker " + std::to_string(i));
        work(*workers[static_cast<size_t>(i)]);
      });
    } catch (...) {
      queue.close();  // the threads that did start have to return before this is gone
      backend->retire();
      throw;
    }
  }

  const double* draws(const Batch& batch, int sample) const {
    return batch.draws.data() + static_cast<size_t>(sample) * static_cast<size_t>(options.recipe.draws);
  }

  void done(const std::shared_ptr<Batch>& batch) {
    if (batch->remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) backend->complete(batch);
  }

  void sample_made(const std::shared_ptr<Batch>& batch) override { done(batch); }

  void help_wanted() override { queue.wake(); }

  Recorder& recorder() override { return *records; }

  void batch_ready(Batch& batch) override {
    batch.ready.store(true, std::memory_order_release);
    wake();
  }

  void make_here(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample,
                 std::span<const uint8_t> bytes) override {
    make_from(worker, batch, sample, bytes, false);
  }

  void end_writing(Batch& batch) {
    if (batch.writers.fetch_sub(1) == 1 && batch.cancelled.load()) wake();
  }

  void wake() {
    {
      const std::lock_guard lock(mutex);  // so that a waiter is before its check or asleep, never between
    }
    complete.notify_all();
  }

  // Batch::attempt with the right to write the sample; false: the batch is cancelled.
  template <typename Body>
  bool guarded(Batch& batch, int sample, Stage stage, Body body) {
    if (!batch.begin_writing()) {
      wake();  // who cancels may have counted this thread as one that writes
      return false;
    }
    batch.attempt(sample, stage, body);
    end_writing(batch);
    return true;
  }

  void make(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample) {
    const Blob blob = batch->blobs->at(batch->rows[static_cast<size_t>(sample)]);
    if (blob.raw.data != nullptr) return make_from_pixels(worker, batch, sample, blob.raw);
    std::span<const uint8_t> bytes;
    bool elsewhere = false;
    // Without the right to write: who cancels a batch does not wait for a file system that does not answer.
    const bool known = batch->attempt(sample, Stage::kRead, [&] {
      try {
        bytes = worker.read(blob);
      } catch (const NeedsPillow& verdict) {
        python.pillow.push({.batch = batch, .sample = sample, .reason = verdict.what(), .path = blob.path});
        elsewhere = true;
      }
    });
    if (elsewhere) return;
    if (!known) return done(batch);
    make_from(worker, batch, sample, bytes, true);
  }

  void make_from_pixels(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample, const RawImage& image) {
    const bool timed = sample % kTimedShare == 0 || worker.stats.recording();
    const int64_t begin = timed ? now_ns() : 0;
    worker.stats.add(Clock::kRead);
    bool elsewhere = false;
    const bool mine =
        guarded(*batch, sample, Stage::kResize, [&] { elsewhere = !go_on(worker, batch, sample, 0, image); });
    if (timed) worker.stats.add(Clock::kResize, begin, now_ns());
    if (mine && !elsewhere) done(batch);
  }

  void make_from(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample, std::span<const uint8_t> bytes,
                 bool may_hand_on) {
    bool elsewhere = false;  // who has it counts it: Pillow's `finish` or `fail`, or `sample_made`
    const bool mine = guarded(*batch, sample, Stage::kDecode, [&] {
      try {
        if (python.has_calls()) {
          const int64_t begin = now_ns();
          python.call_with_file(batch, sample, bytes, draws(*batch, sample));
          worker.stats.add(Clock::kHeader);
          worker.stats.add(Clock::kDecode, begin, now_ns());
          elsewhere = true;
        } else {
          elsewhere = !worker.make(bytes, draws(*batch, sample), batch, sample, may_hand_on);
        }
      } catch (const NeedsPillow& verdict) {
        python.pillow.push({batch, sample, {bytes.begin(), bytes.end()}, verdict.what()});
        elsewhere = true;
      }
    });
    if (mine && !elsewhere) done(batch);
  }

  // Goes on with an image from step `from` on; whether the sample is made: else a call has it.
  bool go_on(SampleWorker& worker, const std::shared_ptr<Batch>& batch, int sample, size_t from,
             const RawImage& image) {
    if (python.has_call_after(from)) {
      python.call_with_pixels(batch, sample, from, image, draws(*batch, sample));
      return false;
    }
    worker.make_from_pixels(image, draws(*batch, sample), *batch, sample);
    return true;
  }

  // Makes a sample that was handed on; false: there is none.
  bool help(SampleWorker& worker) {
    const std::optional<HandedOn> one = backend->take_help();
    if (one) make_from(worker, one->batch, one->sample, one->bytes, false);
    return one.has_value();
  }

  void work(SampleWorker& worker) {
    backend->begin_thread();
    SampleQueue::Task task;
    for (;;) {
      const int64_t begin = now_ns();
      if (!queue.pop(task, [this] { return backend->wants_help(); })) return;
      worker.stats.add(Clock::kIdle, begin, now_ns());
      if (task.batch != nullptr) {
        make(worker, task.batch, task.sample);
      } else {
        help(worker);
      }
    }
  }

  std::shared_ptr<Batch> take_back(PythonJob& job, int64_t ns) {
    check_process();
    return python.take_back(job, ns);
  }

  void check_process() const {
    if (fork.forked()) {
      throw std::logic_error(
          "this loader's threads were started before the process forked and do not exist in the child; "
          "make a new iterator, iter(loader), in the child");
    }
  }

  const PipelineOptions options;
  const std::shared_ptr<Recorder> records;
  const std::shared_ptr<Backend> backend;
  const ForkGuard fork;
  SampleQueue queue;
  PythonDesk python;
  std::mutex mutex;
  std::condition_variable complete;  // some batch got complete, or closed
  bool closed = false;               // guarded by mutex
  std::mutex inline_mutex;           // of run_one()
  Pool<SampleWorker> spare;          // of the threads that go on with what Python made
  std::vector<std::unique_ptr<SampleWorker>> workers;
  ThreadPool threads;
};

Pipeline::Pipeline(PipelineOptions options) : state_(new State(std::move(options))) {}

Pipeline::~Pipeline() {
  if (state_->fork.forked()) return;
  close();
  delete state_;
}

std::shared_ptr<Batch> Pipeline::submit(std::shared_ptr<const BlobTable> blobs, std::vector<int64_t> rows,
                                        std::vector<double> draws, BatchMemory memory) {
  state_->check_process();
  auto batch = state_->backend->new_batch();
  batch->fill(std::move(blobs), std::move(rows), std::move(draws), options().recipe.draws);
  state_->backend->prepare(*batch, memory);
  if (batch->size() > 0) state_->queue.push(batch);
  return batch;
}

std::shared_ptr<Batch> Pipeline::repair(const Batch& batch, std::vector<int> places,
                                        std::shared_ptr<const BlobTable> blobs, std::vector<int64_t> rows,
                                        std::vector<double> draws) {
  state_->check_process();
  auto second = state_->backend->new_batch();
  second->fill(std::move(blobs), std::move(rows), std::move(draws), options().recipe.draws);
  second->places = std::move(places);
  state_->backend->prepare_repair(*second, batch);
  if (second->size() > 0) state_->queue.push_front(second);
  return second;
}

bool Pipeline::wait(const Batch& batch, std::chrono::milliseconds patience) {
  state_->check_process();
  const auto complete = [&] { return batch.ready.load(std::memory_order_acquire); };
  if (complete()) return true;
  std::unique_lock lock(state_->mutex);
  state_->complete.wait_for(lock, patience, [&] { return complete() || state_->closed || batch.cancelled.load(); });
  return complete();
}

void Pipeline::hand_over(Batch& batch, uintptr_t stream) {
  state_->check_process();
  state_->backend->hand_over(batch, stream);
}

void Pipeline::cancel(Batch& batch) {
  batch.cancelled.store(true);
  if (state_->fork.forked()) return;
  state_->wake();
  if (batch.slot != nullptr) return;
  {
    std::unique_lock lock(state_->mutex);
    state_->complete.wait(lock, [&] { return batch.writers.load() == 0; });
  }
  state_->backend->abandon(batch);
}

void Pipeline::compact(const Batch& batch, std::span<const int> places) const {
  const size_t bytes = options().strides.sample_bytes;
  for (size_t to = 0; to < places.size(); ++to) {
    const auto from = static_cast<size_t>(places[to]);
    if (from != to) std::memmove(batch.memory + to * bytes, batch.memory + from * bytes, bytes);
  }
}

bool Pipeline::run_one() {
  state_->check_process();
  const std::lock_guard alone(
      state_->inline_mutex);  // two iterators may share a pipeline, and their threads its worker
  SampleQueue::Task task;
  SampleWorker& worker = *state_->workers.front();
  if (!state_->queue.try_pop(task)) return state_->help(worker);
  state_->make(worker, task.batch, task.sample);
  return true;
}

std::optional<PythonJob> Pipeline::next_pillow_job(std::chrono::milliseconds patience) {
  state_->check_process();
  return state_->python.next(state_->python.pillow, patience);
}

size_t Pipeline::pillow_jobs_waiting() const { return state_->fork.forked() ? 0 : state_->python.pillow.waiting(); }

std::optional<PythonJob> Pipeline::next_call(std::chrono::milliseconds patience) {
  state_->check_process();
  return state_->python.next(state_->python.calls, patience);
}

size_t Pipeline::calls_waiting() const { return state_->fork.forked() ? 0 : state_->python.calls.waiting(); }

void Pipeline::finish(PythonJob& job, const uint8_t* pixels, Size size, int64_t python_ns) {
  const std::shared_ptr<Batch> batch = state_->take_back(job, python_ns);
  bool elsewhere = false;
  const bool mine = state_->guarded(*batch, job.sample, Stage::kResize, [&] {
    auto worker = state_->spare.take([&] { return state_->backend->worker(); });
    const int64_t begin = worker->stats.recording() ? now_ns() : 0;
    elsewhere = !state_->go_on(*worker, batch, job.sample, job.from, rgbx_image(pixels, size));
    if (begin != 0) worker->stats.add(Clock::kResize, begin, now_ns());
    state_->spare.give(std::move(worker));
  });
  if (mine && !elsewhere) state_->done(batch);
}

void Pipeline::finish_elements(PythonJob& job, std::span<const uint8_t> elements, int64_t python_ns) {
  const size_t bytes = options().strides.sample_bytes;
  if (elements.size() != bytes) throw std::invalid_argument("the elements do not fit a sample");
  const std::shared_ptr<Batch> batch = state_->take_back(job, python_ns);
  const bool mine = state_->guarded(*batch, job.sample, Stage::kTransform, [&] {
    std::memcpy(batch->memory + static_cast<size_t>(batch->place(job.sample)) * bytes, elements.data(), bytes);
  });
  if (mine) state_->done(batch);
}

void Pipeline::put_back(PythonJob& job) {
  if (job.batch == nullptr || state_->fork.forked()) return;
  PythonJob again = job;  // a copy: Python may still look at the pixels of this one
  job.batch = nullptr;
  (job.call < 0 ? state_->python.pillow : state_->python.calls).put_back(std::move(again));
}

void Pipeline::fail(PythonJob& job, std::string reason) {
  const std::shared_ptr<Batch> batch = state_->take_back(job, 0);
  batch->fail({job.sample, job.call < 0 ? Stage::kDecode : Stage::kTransform, 0, std::move(reason)});
  state_->done(batch);
}

void Pipeline::close() {
  if (state_->fork.forked()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
  }
  state_->backend->retire();
  state_->queue.close();
  state_->python.close();
  state_->complete.notify_all();
}

bool Pipeline::settle(std::chrono::milliseconds patience) {
  return state_->fork.forked() || state_->threads.wait(patience);
}

bool Pipeline::closed() const {
  if (state_->fork.forked()) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->closed;
}

std::string Pipeline::trouble() const {
  state_->check_process();
  return state_->backend->trouble();
}

std::vector<StageReport> Pipeline::stats() const {
  state_->check_process();
  std::vector<StageReport> report(kClocks);
  for (size_t i = 0; i < kClocks; ++i) {
    report[i].stage = kClockNames[i];
    for (const auto& worker : state_->workers) {
      report[i].items += worker->stats.items[i].load(std::memory_order_relaxed);
      report[i].busy_ns += worker->stats.busy_ns[i].load(std::memory_order_relaxed);
    }
  }
  for (StageReport& more : state_->python.stats()) report.push_back(std::move(more));
  for (StageReport& more : state_->backend->stats()) report.push_back(std::move(more));
  return report;
}

size_t Pipeline::slots() const {
  state_->check_process();
  return state_->backend->slots();
}

const PipelineOptions& Pipeline::options() const { return state_->options; }

}  // namespace headrace
