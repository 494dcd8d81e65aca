// Puts uploads, launches and events on the device's streams in a safe order.
#include "gpu/batches/device_backend.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "gpu/batches/device_worker.h"

namespace headrace {

DeviceBackend::DeviceBackend(std::shared_ptr<Device> device, SampleOptions options, int batches,
                             std::unique_ptr<DecodeLane> lane)
    : device_(std::move(device)),
      options_(std::move(options)),
      ring_(std::make_shared<StagingRing>(device_, batches)),
      lane_(std::move(lane)) {
  const DeviceScope current(*device_);
  format_ = output_format(options_.recipe.output, options_.strides);
  copy_stream_ = OwnedStream(device_);
  kernel_stream_ = OwnedStream(device_);
  uploaded_ = OwnedEvent(device_);
  upload_tables();
}

void DeviceBackend::upload_tables() {
  const size_t lut_bytes = options_.lut.size(), table_bytes = lut_bytes + options_.erased.size();
  tables_ = OwnedMemory(device_, table_bytes);
  format_.lut = tables_.get();
  format_.erased = tables_.get() + lut_bytes;  // aligned: the table before it has whole kilobytes
  StagingArea once(device_);
  const StagedBytes staged = once.take(table_bytes);
  std::copy(options_.lut.begin(), options_.lut.end(), staged.host);
  std::copy(options_.erased.begin(), options_.erased.end(), staged.host + lut_bytes);
  try {
    device_->copy_to_device(tables_.get(), staged.host, table_bytes, kernel_stream_.get());
    device_->record(uploaded_.get(), kernel_stream_.get());
    device_->synchronize(uploaded_.get());
  } catch (...) {
    drain(kernel_stream_.get());  // the copy may still read the staging area, which is freed now
    throw;
  }
}

DeviceBackend::~DeviceBackend() {
  retire();
  try {
    const DeviceScope current(*device_);
    drain(copy_stream_.get());
    drain(kernel_stream_.get());         // a kernel may be reading the tables
  } catch (const std::runtime_error&) {  // the device is lost
  }
}

// Blocks until all work on the stream is done, or the device is lost.
void DeviceBackend::drain(Stream stream) noexcept {
  try {
    const OwnedEvent end(device_);
    device_->record(end.get(), stream);
    device_->synchronize(end.get());
  } catch (const std::exception&) {
  }
}

// Permanently: switching back and forth would also start CUDA on the other GPUs.
void DeviceBackend::bind_thread() noexcept {
  try {
    device_->enter();
  } catch (const std::exception&) {  // the first allocation reports the same error
  }
}

void DeviceBackend::start(PipelineHooks& hooks) {
  hooks_ = &hooks;
  launcher_.start(1, [this](int) { run(); });
  if (lane_ == nullptr) return;
  const auto recorded_worker = [this] {
    auto worker = make_worker();
    worker->stats.recorder = &hooks_->recorder();
    return worker;
  };
  lane_->start(hooks, recorded_worker, [this] { device_->enter(); });
}

std::optional<StolenSample> DeviceBackend::steal() {
  std::optional<EncodedSample> one = lane_ != nullptr ? lane_->steal() : std::nullopt;
  if (!one) return std::nullopt;
  return StolenSample{std::move(one->batch), one->sample, one->image.bytes};
}

bool DeviceBackend::stealable() const { return lane_ != nullptr && lane_->stealable(); }

std::shared_ptr<Batch> DeviceBackend::new_batch() { return std::make_shared<DeviceBatch>(); }

void DeviceBackend::prepare(Batch& batch, BatchMemory memory) {
  if (memory.data == nullptr && batch.size() > 0) throw std::logic_error("a batch on a device needs memory of it");
  auto& mine = static_cast<DeviceBatch&>(batch);
  const DeviceScope current(*device_);
  mine.memory = memory.data;
  mine.allocated = std::make_shared<OwnedEvent>(device_);
  mine.written = std::make_shared<OwnedEvent>(device_);
  device_->record(mine.allocated->get(), static_cast<Stream>(memory.stream));
  give_staging_area(mine);
}

void DeviceBackend::prepare_repair(Batch& batch, const Batch& first) {
  auto& mine = static_cast<DeviceBatch&>(batch);
  const auto& before = static_cast<const DeviceBatch&>(first);
  const DeviceScope current(*device_);
  mine.allocated = before.allocated;
  mine.written = before.written;
  give_staging_area(mine);
}

// Gives the batch its staging area, and jobs that write nothing (skip) until workers replace them. May wait or
// allocate, as StagingRing::acquire does. The device must be current.
void DeviceBackend::give_staging_area(DeviceBatch& batch) {
  batch.area = ring_->acquire();
  batch.jobs.assign(static_cast<size_t>(batch.size()), SampleJob{});
  batch.headers.assign(lane_ != nullptr ? batch.jobs.size() : 0, std::nullopt);
  for (SampleJob& job : batch.jobs) job.skip = true;
}

std::unique_ptr<SampleWorker> DeviceBackend::make_worker() {
  return std::make_unique<DeviceWorker>(options_, lane_.get());
}

void DeviceBackend::complete(const std::shared_ptr<Batch>& batch) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    tasks_.push_back(std::static_pointer_cast<DeviceBatch>(batch));
  }
  changed_.notify_all();
}

void DeviceBackend::run() {
  Recorder& recorder = hooks_->recorder();
  recorder.name_thread("launcher");
  std::string trouble;
  try {
    device_->enter();
  } catch (const std::exception& error) {
    trouble = error.what();
  }
  for (;;) {
    std::shared_ptr<DeviceBatch> batch;
    const int64_t idle = recorder.recording() ? now_ns() : 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closed_ || !tasks_.empty(); });
      if (closed_) return;
      batch = std::move(tasks_.front());
      tasks_.pop_front();
      launching_ = batch.get();
    }
    const int64_t begin = now_ns();
    if (idle != 0) recorder.add("idle", idle, begin);
    if (!trouble.empty()) batch->break_down(trouble);
    try {
      if (!batch->cancelled.load() && batch->broken().empty()) launch(*batch);
    } catch (const std::exception& error) {
      batch->break_down(error.what());
      drain(copy_stream_.get());  // the device may still read the area, which becomes free
      drain(kernel_stream_.get());
    }
    const int64_t end = now_ns();
    recorder.add("launch", begin, end, batch->size());
    bool closed = false;
    {
      const std::lock_guard lock(mutex_);
      launching_ = nullptr;
      ++launches_;
      launch_ns_ += end - begin;
      closed = closed_;
    }
    changed_.notify_all();
    if (closed) return;
    hooks_->batch_ready(*batch);
  }
}

void DeviceBackend::launch(DeviceBatch& batch) {
  const size_t count = batch.jobs.size();
  for (size_t i = 0; i < count; ++i) {
    const auto place = static_cast<size_t>(batch.place(static_cast<int>(i)));
    batch.jobs[i].output = batch.memory + options_.strides.offset_of(place);
  }
  const StagedBytes jobs = batch.area->take(count * sizeof(SampleJob));
  std::memcpy(jobs.host, batch.jobs.data(), count * sizeof(SampleJob));
  batch.area->upload(copy_stream_.get());
  const Stream kernels = kernel_stream_.get();
  device_->record(uploaded_.get(), copy_stream_.get());
  device_->wait(kernels, uploaded_.get());
  device_->wait(kernels, batch.allocated->get());
  device_->fuse(launch_of(reinterpret_cast<const SampleJob*>(jobs.device), batch.jobs, format_), kernels);
  device_->record(batch.written->get(), kernels);
  batch.area.release(kernels);
}

void DeviceBackend::hand_over(Batch& batch, uintptr_t stream) {
  const DeviceScope current(*device_);
  device_->wait(static_cast<Stream>(stream), static_cast<DeviceBatch&>(batch).written->get());
}

void DeviceBackend::abandon(Batch& batch) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return launching_ != &batch; });
  }
  try {
    const DeviceScope current(*device_);
    device_->synchronize(
        static_cast<DeviceBatch&>(batch).written->get());  // returns at once where nothing was launched
  } catch (const std::runtime_error&) {                    // a lost device writes nothing
  }
}

void DeviceBackend::retire() noexcept {
  if (fork_.forked()) return;
  const std::lock_guard once(retiring_);
  if (lane_ != nullptr) lane_->close();
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  launcher_.join();
  const std::lock_guard lock(mutex_);
  tasks_.clear();
}

size_t DeviceBackend::slots() const { return ring_->areas(); }

std::vector<StageReport> DeviceBackend::stats() const {
  const std::lock_guard lock(mutex_);
  std::vector<StageReport> report{{"launch", launches_, launch_ns_}};
  if (lane_ != nullptr) {
    const DecodeLane::Counts counts = lane_->counts();
    report.push_back({"device decode", counts.decoded, counts.busy_ns});
    report.push_back({"taken over", counts.stolen, 0});
    report.push_back({"refused", counts.returned, 0});
  }
  return report;
}

// Damaged files are rare, and the header check rejects most of them: a decoder that refuses kMany files and decodes
// none does not work at all.
std::string DeviceBackend::trouble() const {
  constexpr int64_t kMany = 64;  // refused files
  if (lane_ == nullptr) return {};
  const DecodeLane::Counts counts = lane_->counts();
  if (counts.decoded > 0 || counts.returned < kMany) return {};
  return "the device's decoder refused all of the " + std::to_string(counts.returned) +
         " files that it was given so far (the first: " + counts.refusal + "), so the CPU decodes them";
}

}  // namespace headrace
