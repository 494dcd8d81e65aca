// Runs samples through the stages on the workers' threads and keeps count of what is still to come.
#include "pipeline.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>

#include "fork_guard.h"
#include "sample_maker.h"
#include "sample_queue.h"
#include "thread_pool.h"

namespace headrace {
OutputLayout planar(int channels, Size size, int element_bytes) {
  const ptrdiff_t row = ptrdiff_t{element_bytes} * size.width, plane = row * size.height;
  return {element_bytes, channels, plane, row, element_bytes, static_cast<size_t>(plane * channels)};
}

OutputLayout channels_last(int channels, Size size, int element_bytes) {
  const ptrdiff_t pixel = ptrdiff_t{element_bytes} * channels, row = pixel * size.width;
  return {element_bytes, channels, element_bytes, row, pixel, static_cast<size_t>(row * size.height)};
}

struct Pipeline::State {
  explicit State(PipelineOptions given)
      : options(std::move(given)),
        kernels(options.kernels != nullptr ? *options.kernels : headrace::kernels()),
        workers(static_cast<size_t>(std::max(1, options.threads))) {
    lut.resize(options.lut.size() + kLutAlignment);
    const auto misaligned = reinterpret_cast<uintptr_t>(lut.data()) % kLutAlignment;
    aligned_lut = lut.data() + (misaligned == 0 ? 0 : kLutAlignment - misaligned);
    std::memcpy(aligned_lut, options.lut.data(), options.lut.size());
    for (auto& worker : workers) {
      worker = std::make_unique<SampleMaker>(kernels, options.recipe, options.max_pixels);
    }
    try {
      threads.start(options.threads, [this](int i) { work(*workers[static_cast<size_t>(i)]); });
    } catch (...) {
      queue.close();  // those that did start have to return, or joining them would never end
      throw;
    }
  }

  Output output(const Batch& batch, int sample) const {
    const OutputLayout& layout = options.layout;
    return {batch.memory + static_cast<size_t>(batch.place(sample)) * layout.sample_bytes,
            layout.channel_stride,
            layout.row_stride,
            layout.pixel_stride,
            {layout.element_bytes, layout.channels, aligned_lut}};
  }

  const double* draws(const Batch& batch, int sample) const {
    return batch.draws.data() + static_cast<size_t>(sample) * static_cast<size_t>(options.recipe.draws);
  }

  void done(Batch& batch) {
    if (batch.remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) wake();
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

  // Calls `body` and notes what it throws; whether it threw nothing.
  template <typename Body>
  static bool noted(Batch& batch, int sample, Stage stage, Body body) {
    try {
      body();
      return true;
    } catch (const Error& error) {
      batch.fail({sample, error.stage(), error.os_errno(), error.what()});
    } catch (const std::bad_alloc&) {
      batch.fail({sample, stage, ENOMEM, "not enough memory"});
    } catch (const std::exception& error) {
      batch.fail({sample, stage, 0, error.what()});
    }
    return false;
  }

  // The same with the right to write the sample; false: the batch is cancelled.
  template <typename Body>
  bool guarded(Batch& batch, int sample, Stage stage, Body body) {
    if (!batch.begin_writing()) return false;
    noted(batch, sample, stage, body);
    end_writing(batch);
    return true;
  }

  void make(SampleMaker& worker, const std::shared_ptr<Batch>& batch, int sample) {
    std::span<const uint8_t> bytes;
    // Without the right to write: who cancels a batch does not wait for a file system that does not answer.
    if (!noted(*batch, sample, Stage::kRead,
               [&] { bytes = worker.read(batch->blobs->at(batch->rows[static_cast<size_t>(sample)])); }))
      return done(*batch);
    bool at_pillow = false;
    const bool mine = guarded(*batch, sample, Stage::kDecode, [&] {
      try {
        worker.make(bytes, draws(*batch, sample), output(*batch, sample));
      } catch (const NeedsPillow& verdict) {
        pillow.push({batch, sample, {bytes.begin(), bytes.end()}, verdict.what()});
        at_pillow = true;  // `finish` or `fail` counts it
      }
    });
    if (mine && !at_pillow) done(*batch);
  }

  void work(SampleMaker& worker) {
    SampleQueue::Task task;
    for (;;) {
      const int64_t begin = now_ns();
      if (!queue.pop(task)) return;
      worker.stats.add(Clock::kIdle, now_ns() - begin);
      make(worker, task.batch, task.sample);
    }
  }

  // Batches are of one size but for a last, smaller one; a larger one than ever before starts a new ring.
  Lease acquire(size_t bytes) {
    std::shared_ptr<SlotRing> current;
    {
      const std::lock_guard lock(mutex);
      if (ring == nullptr || ring->slot_bytes() < bytes) ring = SlotRing::make(bytes, options.slots_kept);
      current = ring;
    }
    return current->acquire();
  }

  size_t slots() {
    const std::lock_guard lock(mutex);
    return ring == nullptr ? 0 : ring->slots();
  }

  std::unique_ptr<Fuser> borrow_fuser(int64_t ns) {
    pillow_items.fetch_add(1, std::memory_order_relaxed);
    pillow_ns.fetch_add(ns, std::memory_order_relaxed);
    const std::lock_guard lock(mutex);
    if (spare.empty()) return std::make_unique<Fuser>(kernels);
    auto fuser = std::move(spare.back());
    spare.pop_back();
    return fuser;
  }

  void return_fuser(std::unique_ptr<Fuser> fuser) {
    const std::lock_guard lock(mutex);
    spare.push_back(std::move(fuser));
  }

  void check_process() const {
    if (fork.forked()) {
      throw std::logic_error(
          "this loader's threads were started before the process forked and do not exist in the child; "
          "make a new iterator, iter(loader), in the child");
    }
  }

  static constexpr size_t kLutAlignment = 64;
  const PipelineOptions options;
  const Kernels& kernels;
  const ForkGuard fork;
  std::vector<uint8_t> lut;
  uint8_t* aligned_lut = nullptr;
  std::shared_ptr<SlotRing> ring;  // guarded by mutex; of the largest batch so far
  SampleQueue queue;
  PillowLane pillow;
  std::mutex mutex;
  std::condition_variable complete;  // some batch got complete, or closed
  bool closed = false;               // guarded by mutex
  std::vector<std::unique_ptr<Fuser>>
      spare;  // guarded by mutex: fusers of the Python threads that finish Pillow's images
  std::atomic<int64_t> pillow_items{0}, pillow_ns{0};
  std::vector<std::unique_ptr<SampleMaker>> workers;
  ThreadPool threads;
};

Pipeline::Pipeline(PipelineOptions options) : state_(new State(std::move(options))) {}

Pipeline::~Pipeline() {
  if (state_->fork.forked()) return;
  close();
  delete state_;
}

namespace {

std::shared_ptr<Batch> make_batch(std::shared_ptr<const BlobTable> blobs, std::vector<int64_t> rows,
                                  std::vector<double> draws, size_t draws_each) {
  if (draws.size() != rows.size() * draws_each)
    throw std::invalid_argument("draws do not fit the batch and the recipe");
  for (const int64_t row : rows) {
    if (row < 0 || row >= blobs->size()) {
      throw std::out_of_range("index " + std::to_string(row) + " is out of range for a dataset of " +
                              std::to_string(blobs->size()) + " samples");
    }
  }
  auto batch = std::make_shared<Batch>();
  batch->blobs = std::move(blobs);
  batch->rows = std::move(rows);
  batch->draws = std::move(draws);
  batch->remaining.store(batch->size());
  return batch;
}

}  // namespace

std::shared_ptr<Batch> Pipeline::submit(std::shared_ptr<const BlobTable> blobs, std::vector<int64_t> rows,
                                        std::vector<double> draws, uint8_t* memory) {
  state_->check_process();
  const size_t bytes = rows.size() * options().layout.sample_bytes;
  auto batch =
      make_batch(std::move(blobs), std::move(rows), std::move(draws), static_cast<size_t>(options().recipe.draws));
  batch->memory = memory;
  if (memory == nullptr) {
    batch->slot = state_->acquire(bytes);
    batch->memory = batch->slot.get();
  }
  if (batch->size() > 0) state_->queue.push(batch);
  return batch;
}

std::shared_ptr<Batch> Pipeline::repair(const Batch& batch, std::vector<int> places,
                                        std::shared_ptr<const BlobTable> blobs, std::vector<int64_t> rows,
                                        std::vector<double> draws) {
  state_->check_process();
  auto second =
      make_batch(std::move(blobs), std::move(rows), std::move(draws), static_cast<size_t>(options().recipe.draws));
  second->places = std::move(places);
  second->slot = batch.slot;
  second->memory = batch.memory;
  if (second->size() > 0) state_->queue.push_front(second);
  return second;
}

bool Pipeline::wait(const Batch& batch, std::chrono::milliseconds patience) {
  state_->check_process();
  const auto complete = [&] { return batch.remaining.load(std::memory_order_acquire) == 0; };
  if (complete()) return true;
  std::unique_lock lock(state_->mutex);
  state_->complete.wait_for(lock, patience, [&] { return complete() || state_->closed; });
  return complete();
}

void Pipeline::cancel(Batch& batch) {
  batch.cancelled.store(true);
  if (batch.slot != nullptr || state_->fork.forked()) return;
  std::unique_lock lock(state_->mutex);
  state_->complete.wait(lock, [&] { return batch.writers.load() == 0; });
}

bool Pipeline::run_one() {
  state_->check_process();
  SampleQueue::Task task;
  if (!state_->queue.try_pop(task)) return false;
  state_->make(*state_->workers.front(), task.batch, task.sample);
  return true;
}

std::optional<PillowJob> Pipeline::next_pillow_job(std::chrono::milliseconds patience) {
  state_->check_process();
  return state_->pillow.pop(patience);
}

size_t Pipeline::pillow_jobs_waiting() const { return state_->fork.forked() ? 0 : state_->pillow.waiting(); }

void Pipeline::finish(PillowJob& job, const uint8_t* pixels, Size size, int64_t pillow_ns) {
  state_->check_process();
  const std::shared_ptr<Batch> batch = std::exchange(job.batch, nullptr);
  if (batch == nullptr) throw std::logic_error("this job is finished already");
  const bool mine = state_->guarded(*batch, job.sample, Stage::kResize, [&] {
    const Plan plan = resolve(options().recipe, state_->draws(*batch, job.sample), size);
    const Output out = state_->output(*batch, job.sample);
    auto fuser = state_->borrow_fuser(pillow_ns);
    fuser->run(plan, pixels, static_cast<size_t>(size.width) * kPixelBytes, size, out);
    state_->return_fuser(std::move(fuser));
  });
  if (mine) state_->done(*batch);
}

void Pipeline::fail(PillowJob& job, std::string reason) {
  state_->check_process();
  const std::shared_ptr<Batch> batch = std::exchange(job.batch, nullptr);
  if (batch == nullptr) throw std::logic_error("this job is finished already");
  batch->fail({job.sample, Stage::kDecode, 0, std::move(reason)});
  state_->done(*batch);
}

void Pipeline::close() {
  if (state_->fork.forked()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    if (state_->ring != nullptr) state_->ring->retire();
  }
  state_->queue.close();
  state_->pillow.close();
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

std::vector<StageReport> Pipeline::stats() const {
  state_->check_process();
  std::vector<StageReport> report(kClocks + 1);
  for (size_t i = 0; i < kClocks; ++i) {
    report[i].stage = kClockNames[i];
    for (const auto& worker : state_->workers) {
      report[i].items += worker->stats.items[i].load(std::memory_order_relaxed);
      report[i].busy_ns += worker->stats.busy_ns[i].load(std::memory_order_relaxed);
    }
  }
  report[kClocks] = {"pillow", state_->pillow_items.load(), state_->pillow_ns.load()};
  return report;
}

size_t Pipeline::slots() const {
  state_->check_process();
  return state_->slots();
}

const PipelineOptions& Pipeline::options() const { return state_->options; }

}  // namespace headrace
