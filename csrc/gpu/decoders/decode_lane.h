// The queue of samples that a device decodes: its decoders take groups from the front, workers with nothing else to do
// take single ones, and what a decoder refuses is made by the CPU.
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
#include "core/batch/device_side.h"
#include "gpu/decoders/batch_decoder.h"

namespace headrace {

/// A sample whose file is staged and whose job expects its planes.
struct EncodedSample {
  std::shared_ptr<Batch> batch;
  int sample = 0;
  EncodedImage image;
};

class DecodeLane {
 public:
  using Decoders = std::vector<std::unique_ptr<BatchDecoder>>;
  struct Counts {
    int64_t decoded = 0, stolen = 0, returned = 0, busy_ns = 0;
    std::string refusal;  // of the first sample that a decoder refused
  };

  /// One thread a decoder; there is one at least, and all take as many images a call. `shared`: whether the CPU's
  /// workers may take samples from here; without it, the same samples are decoded by the device every time.
  DecodeLane(Decoders decoders, bool shared);
  ~DecodeLane() { close(); }
  DecodeLane(const DecodeLane&) = delete;
  DecodeLane& operator=(const DecodeLane&) = delete;

  /// `worker` makes what makes the samples that a decoder refuses; `enter` is the first call of each thread.
  void start(PipelineHooks& hooks, std::function<std::unique_ptr<SampleWorker>()> worker, std::function<void()> enter);
  /// Any thread.
  void push(EncodedSample sample);
  /// The first sample that no decoder has begun. Any thread.
  std::optional<EncodedSample> steal();
  bool stealable() const;
  /// Drops what is queued and waits for what is begun; hooks are not called afterwards. Idempotent.
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
  std::mutex closing_;  // whoever comes second waits until the threads have ended
  ThreadPool threads_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<EncodedSample> queue_;  // guarded by mutex_, as are closed_ and counts_
  bool closed_ = false;
  Counts counts_;
};

}  // namespace headrace
