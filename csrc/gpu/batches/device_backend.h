// Batches on a device: workers stage samples, a thread of its own uploads each complete batch and launches the kernel.
//
// Note [hand-off]: the memory of a batch is a tensor that the user's framework allocated on the user's stream. Whatever
// used that memory before was put on that stream before, so the kernel waits for an event recorded there at submission.
// The user's stream then waits for `written`, and everything later on it, the freeing of the tensor too, is in order.
// Nobody but the device waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "core/base/fork_guard.h"
#include "core/base/thread_pool.h"
#include "core/batch/backend.h"
#include "core/batch/device_side.h"
#include "gpu/batches/device_batch.h"
#include "gpu/decoders/decode_lane.h"

namespace headrace {

class DeviceBackend final : public Backend, public DeviceSide {
 public:
  /// `batches`: that may be in flight on the device; further ones wait in prepare(). `lane`: the device's own decoders;
  /// null: the CPU decodes everything.
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
  void stage_in(DeviceBatch& batch);
  void run();
  void launch(DeviceBatch& batch);
  void settle(Stream stream) noexcept;
  void upload_tables();

  const std::shared_ptr<Device> device_;
  const SampleOptions options_;
  const ForkGuard fork_;
  const std::shared_ptr<StagingRing> ring_;
  OutputFormat format_;
  OwnedMemory tables_;  // elements of the bytes, then what Erase writes
  OwnedStream copy_stream_, kernel_stream_;
  OwnedEvent uploaded_;  // by the last launch; only its thread uses it
  const std::unique_ptr<DecodeLane> lane_;
  PipelineHooks* hooks_ = nullptr;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<DeviceBatch>> tasks_;  // guarded by mutex_, as are the following
  const Batch* launching_ = nullptr;
  bool closed_ = false;
  int64_t launches_ = 0, launch_ns_ = 0;
  std::mutex retiring_;  // whoever comes second waits until the threads have ended
  ThreadPool launcher_;
};

}  // namespace headrace
