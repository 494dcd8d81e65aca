// The pipeline's methods for the consumer and for Python's threads.
#include "core/pipeline/pipeline.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/fuse/sinks/rgbx_output.h"
#include "core/pipeline/pipeline_state.h"

namespace headrace {
namespace {

void check_plan(const Plan& plan, const Recipe& recipe) {
  if (plan.last.box.size() != recipe.output) {
    throw std::invalid_argument("a plan makes another size than the batch's");
  }
  for (const Erased& one : plan.erased) {
    if (one.noise != Noise::kNone || one.value < 0 || one.value >= recipe.erases || !one.box.inside(recipe.output)) {
      throw std::invalid_argument("a plan erases a box outside its image, or with a value that there is not");
    }
  }
}

// `recipes`: of a sample's views.
void check_plans(const std::vector<GivenPlan>& plans, size_t samples, const std::vector<const Recipe*>& recipes) {
  if (plans.size() != samples * recipes.size()) throw std::invalid_argument("a plan for each sample, and each view");
  for (size_t i = 0; i < plans.size(); ++i) {
    const Recipe& recipe = *recipes[i % recipes.size()];
    if (!recipe.steps.empty()) throw std::invalid_argument("plans take the place of a recipe's steps: it has none");
    check_plan(plans[i].plan, recipe);
  }
}

}  // namespace

Pipeline::Pipeline(PipelineOptions options) : state_(new State(std::move(options))) {}

Pipeline::~Pipeline() {
  if (state_->fork.forked()) return;
  close();
  delete state_;
}

std::shared_ptr<Batch> Pipeline::submit(std::shared_ptr<const BlobTable> blobs, std::vector<int64_t> rows,
                                        std::vector<double> draws, BatchMemory memory,
                                        std::shared_ptr<EntryPoints> entry_points, std::vector<GivenPlan> plans) {
  state_->check_process();
  if (rows.size() % static_cast<size_t>(options().strides.frames) != 0) {
    throw std::invalid_argument("a batch of clips has all frames of each");
  }
  std::vector<const Recipe*> views = state_->backend->views();
  if (!memory.views.empty() && memory.views.size() != views.size()) throw std::invalid_argument("memory for each view");
  if (views.empty()) views.push_back(&options().recipe);
  if (!plans.empty()) check_plans(plans, rows.size(), views);
  auto batch = state_->new_batch();
  batch->entry_points = std::move(entry_points);
  batch->fill(std::move(blobs), std::move(rows), std::move(draws), options().recipe.draws);
  batch->plans = std::move(plans);
  state_->backend->prepare(*batch, memory);
  if (batch->size() > 0) state_->queue.push(batch);
  return batch;
}

std::shared_ptr<Batch> Pipeline::repair(const Batch& batch, std::vector<int> places,
                                        std::shared_ptr<const BlobTable> blobs, std::vector<int64_t> rows,
                                        std::vector<double> draws) {
  state_->check_process();
  if (!batch.plans.empty()) throw std::logic_error("a batch with plans is not repaired");
  auto second = state_->new_batch();
  second->fill(std::move(blobs), std::move(rows), std::move(draws), options().recipe.draws);
  second->entry_points = batch.entry_points;
  second->places = std::move(places);
  second->room = batch.room;
  second->slot.put(batch.slot.share());
  second->memory = batch.memory;
  second->sized = batch.sized;
  if (state_->device != nullptr) state_->device->prepare_repair(*second, batch);
  if (second->size() > 0) state_->queue.push_front(second);
  return second;
}

bool Pipeline::wait(const Batch& batch, std::chrono::milliseconds patience) {
  state_->check_process();
  const auto complete = [&] { return batch.ready.load(std::memory_order_acquire); };
  if (complete()) return true;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, patience, [&] { return complete() || state_->closed || batch.cancelled.load(); });
  return complete();
}

void Pipeline::hand_over(Batch& batch, uintptr_t stream) {
  state_->check_process();
  if (state_->device != nullptr) state_->device->hand_over(batch, stream);
}

void Pipeline::cancel(Batch& batch) {
  batch.cancelled.store(true);
  if (state_->fork.forked()) return;
  state_->wake();
  if (!batch.slot.empty()) return;
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return batch.writers.load() == 0; });
  }
  if (state_->device != nullptr) state_->device->abandon(batch);
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
  const std::lock_guard alone(state_->inline_mutex);
  SampleQueue::Task task;
  SampleWorker& worker = *state_->workers.front();
  if (!state_->queue.try_pop(task)) return state_->steal(worker);
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

void Pipeline::finish(PythonJob& job, const RawImage& image, int64_t python_ns) {
  const std::shared_ptr<Batch> batch = state_->take_back(job, python_ns);
  if (job.call < 0) batch->sizes[static_cast<size_t>(job.sample)] = image.size;
  bool handed_on = false;
  const bool not_cancelled = state_->guarded(*batch, job.sample, Stage::kResize, [&] {
    auto worker = state_->spare.take([&] { return state_->new_worker(); });
    StageTime resize(worker->stats, Clock::kResize, worker->stats.recording());
    std::optional<PythonJob> call = state_->make_from_step(*worker, batch, job.sample, job.from, image);
    resize.end();
    handed_on = state_->hand_on(std::move(call));
    state_->spare.give(std::move(worker));
  });
  if (not_cancelled && !handed_on) state_->done(batch);
}

void Pipeline::finish_elements(PythonJob& job, std::span<const uint8_t> elements, int64_t python_ns, Size opened) {
  const size_t bytes = options().strides.sample_bytes;
  if (elements.size() != bytes || options().strides.frames != 1) {
    throw std::invalid_argument("the elements do not fit a sample");
  }
  const std::shared_ptr<Batch> batch = state_->take_back(job, python_ns);
  if (opened.height > 0) batch->sizes[static_cast<size_t>(job.sample)] = opened;
  const bool not_cancelled = state_->guarded(*batch, job.sample, Stage::kTransform, [&] {
    std::memcpy(batch->memory + static_cast<size_t>(batch->place(job.sample)) * bytes, elements.data(), bytes);
  });
  if (not_cancelled) state_->done(batch);
}

void Pipeline::put_back(PythonJob& job) {
  if (job.batch == nullptr || state_->fork.forked()) return;
  PythonJob again = job;  // a copy: Python may still read the pixels of this one
  (job.call < 0 ? state_->python.pillow : state_->python.calls).put_back(std::move(again));
  job.batch = nullptr;  // last: if the queue has no memory for it, the job still belongs to the caller, who can fail it
}

void Pipeline::fail(PythonJob& job, std::string reason) {
  const std::shared_ptr<Batch> batch = state_->take_back(job, 0);
  batch->fail(job.sample, job.call < 0 ? Stage::kDecode : Stage::kTransform, 0, reason.c_str());
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
  state_->changed.notify_all();
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
  return state_->device != nullptr ? state_->device->trouble() : std::string();
}

std::vector<StageReport> Pipeline::stats() const {
  state_->check_process();
  std::vector<StageReport> report(kClocks);
  for (size_t i = 0; i < kClocks; ++i) {
    report[i].stage = kClockNames[i];
    state_->each_worker([&](const SampleWorker& worker) {
      report[i].items += worker.stats.items[i].load(std::memory_order_relaxed);
      report[i].busy_ns += worker.stats.busy(static_cast<Clock>(i));
      add_counts(worker.stats.durations[i], report[i].durations);
    });
  }
  for (StageReport& more : state_->python.stats()) report.push_back(std::move(more));
  if (state_->device != nullptr) {
    for (StageReport& more : state_->device->stats()) report.push_back(std::move(more));
  }
  return report;
}

int64_t Pipeline::bytes_read() const {
  state_->check_process();
  int64_t bytes = 0;
  state_->each_worker([&](const SampleWorker& one) { bytes += one.stats.bytes.load(std::memory_order_relaxed); });
  return bytes;
}

std::vector<int64_t> Pipeline::thread_ids() const {
  state_->check_process();
  std::vector<int64_t> ids;
  state_->each_worker([&](const SampleWorker& one) {
    if (const int64_t id = one.stats.thread.load(std::memory_order_relaxed); id != 0) ids.push_back(id);
  });
  return ids;
}

void Pipeline::resize(int count) {
  state_->check_process();
  state_->resize(count);
}

int Pipeline::threads() const {
  state_->check_process();
  const std::lock_guard lock(state_->crew);
  return state_->wanted;
}

int Pipeline::asleep() const {
  state_->check_process();
  const std::lock_guard lock(state_->crew);
  return std::max(0, state_->threads.size() - state_->wanted);
}

void Pipeline::bind_threads(std::span<const int> cpus) {
  state_->check_process();
  const std::lock_guard lock(state_->crew);
  state_->threads.bind_threads(cpus);
}

size_t Pipeline::slots() const {
  state_->check_process();
  return state_->backend->slots();
}

const PipelineOptions& Pipeline::options() const { return state_->options; }

}  // namespace headrace
