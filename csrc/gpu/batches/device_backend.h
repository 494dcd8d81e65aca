// Batches on a device: workers stage samples, and a launcher thread uploads each complete batch and launches the
// kernel.
//
// Note [hand-off]: the memory of a batch is a tensor that torch allocated on the caller's stream. All earlier uses of
// that memory were put on that stream, so the kernel waits for an event that is recorded there at submission. The
// caller's stream then waits for `written`: all later work on it, freeing the tensor included, comes after the kernel.
// Only the device waits, no host thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "core/base/fork_guard.h"
#include "core/base/thread_pool.h"
#include "core/pipeline/batch/backend.h"
#include "core/pipeline/batch/device_side.h"
#include "gpu/batches/device_batch.h"
#include "gpu/decoders/decode_lane.h"

namespace headrace {

/// The backend of a GPU, or of its emulation.
class DeviceBackend final : public Backend, public DeviceSide {
 public:
  /// `batches`: number of staging areas at which prepare() may wait for one (see StagingRing::acquire). `lane`: the
  /// device's decoders; null: the CPU decodes everything. Uploads the tables and blocks until that is done; starts no
  /// thread. Throws std::runtime_error where the device refuses.
  DeviceBackend(std::shared_ptr<Device> device, SampleOptions options, int batches,
                std::unique_ptr<DecodeLane> lane = nullptr);
  ~DeviceBackend() override;

  void prepare(Batch& batch, BatchMemory memory) override;
  std::unique_ptr<SampleWorker> make_worker() override;
  void retire() noexcept override;
  size_t slots() const override;
  DeviceSide* device_side() override { return this; }

  void start(PipelineHooks& hooks) override;
  void bind_thread() noexcept override;
  std::shared_ptr<Batch> new_batch() override;
  void prepare_repair(Batch& batch, const Batch& first) override;
  void complete(const std::shared_ptr<Batch>& batch) override;
  std::optional<StolenSample> steal() override;
  bool stealable() const override;
  void hand_over(Batch& batch, uintptr_t stream) override;
  void abandon(Batch& batch) override;
  std::vector<StageReport> stats() const override;
  std::string trouble() const override;

 private:
  void give_staging_area(DeviceBatch& batch);
  void run();
  void launch(DeviceBatch& batch);
  void drain(Stream stream) noexcept;
  void upload_tables();

  const std::shared_ptr<Device> device_;
  const SampleOptions options_;
  const ForkGuard fork_;
  const std::shared_ptr<StagingRing> ring_;
  OutputFormat format_;
  OwnedMemory tables_;  // SampleOptions::lut, then SampleOptions::erased
  OwnedStream copy_stream_, kernel_stream_;
  OwnedEvent uploaded_;  // of the last launch; after the construction only the launcher uses it
  const std::unique_ptr<DecodeLane> lane_;
  PipelineHooks* hooks_ = nullptr;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<DeviceBatch>> tasks_;  // guarded by mutex_, as are the following
  const Batch* launching_ = nullptr;                // the launcher is in launch() with this batch
  bool closed_ = false;
  int64_t launches_ = 0, launch_ns_ = 0;
  std::mutex retiring_;  // a second call of retire() blocks until the threads have ended
  ThreadPool launcher_;
};

}  // namespace headrace
