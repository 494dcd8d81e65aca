// The queue of samples that a device decodes: its decoders take groups from the front, idle workers steal single
// samples, and the CPU makes the samples that a decoder refuses.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/pipeline/batch/device_side.h"
#include "gpu/decoders/batch_decoder.h"

namespace headrace {

/// A sample whose file is staged and whose job reads its planes.
struct EncodedSample {
  std::shared_ptr<Batch> batch;
  int sample = 0;
  EncodedImage image;
};

/// Decoders, one thread per decoder, and their queue.
class DecodeLane {
 public:
  using Decoders = std::vector<std::unique_ptr<BatchDecoder>>;
  struct Counts {
    int64_t decoded = 0, stolen = 0, returned = 0;  // samples; returned: refused by a decoder
    int64_t busy_ns = 0;                            // summed over decoders
    std::string refusal;                            // of the first sample that a decoder refused
  };

  /// `decoders`: at least one; all have the same most(). `shared`: whether workers may steal samples. If not, the
  /// device decodes the same samples in every run.
  DecodeLane(Decoders decoders, bool shared);
  ~DecodeLane() { close(); }
  DecodeLane(const DecodeLane&) = delete;
  DecodeLane& operator=(const DecodeLane&) = delete;

  /// Starts the threads. `worker` makes a worker for each, for the samples that its decoder refuses; `enter` is the
  /// first call of each thread. Call once.
  void start(PipelineHooks& hooks, std::function<std::unique_ptr<SampleWorker>()> worker, std::function<void()> enter);
  /// Queues a sample. After close() it is dropped. Any thread.
  void push(EncodedSample sample);
  /// Removes the first sample that no decoder has begun; nullopt: there is none, or the lane is not shared. Any thread.
  std::optional<EncodedSample> steal();
  /// Whether steal() would return a sample now. Any thread.
  bool stealable() const;
  /// Drops queued samples and waits for those that decoders have begun. No hook is called afterwards. Idempotent.
  void close();
  Counts counts() const;

 private:
  void run(BatchDecoder& decoder, SampleWorker& worker);
  std::vector<EncodedSample> take_group();
  void make(BatchDecoder& decoder, SampleWorker& worker, std::span<const EncodedSample> group);

  const Decoders decoders_;
  const bool shared_;
  const size_t most_;  // of a group
  PipelineHooks* hooks_ = nullptr;
  std::vector<std::unique_ptr<SampleWorker>> workers_;
  std::mutex closing_;  // a second call of close() blocks until the threads have ended
  ThreadPool threads_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<EncodedSample> queue_;  // guarded by mutex_, as are closed_ and counts_
  bool closed_ = false;
  Counts counts_;
};

}  // namespace headrace
