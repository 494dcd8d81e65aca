// Feeds decoders with groups of one format from the front of the queue.
#include "gpu/decoders/decode_lane.h"

#include <chrono>
#include <exception>
#include <utility>

namespace headrace {
namespace {

constexpr std::chrono::milliseconds kGather{1};  // most that a decoder waits for a full group

}  // namespace

DecodeLane::DecodeLane(Decoders decoders, bool shared)
    : decoders_(std::move(decoders)), shared_(shared), most_(static_cast<size_t>(decoders_.front()->most())) {}

void DecodeLane::start(PipelineHooks& hooks, std::function<std::unique_ptr<SampleWorker>()> worker,
                       std::function<void()> enter) {
  hooks_ = &hooks;
  for (size_t i = 0; i < decoders_.size(); ++i) workers_.push_back(worker());
  threads_.start(static_cast<int>(decoders_.size()), [this, enter](int i) {
    hooks_->recorder().name_thread("device decode lane", i);
    try {
      enter();
    } catch (const std::exception&) {  // the decoder will refuse every sample, so the CPU makes them
    }
    run(*decoders_[static_cast<size_t>(i)], *workers_[static_cast<size_t>(i)]);
  });
}

void DecodeLane::push(EncodedSample sample) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    queue_.push_back(std::move(sample));
    // Wakes only on the first sample or on a full group: decoders wait for nothing else.
    wake = queue_.size() == 1 || queue_.size() == most_;
  }
  if (wake) changed_.notify_one();
  if (shared_) hooks_->stealable_added();
}

std::optional<EncodedSample> DecodeLane::steal() {
  const std::lock_guard lock(mutex_);
  if (!shared_ || queue_.empty()) return std::nullopt;
  EncodedSample first = std::move(queue_.front());
  queue_.pop_front();
  ++counts_.stolen;
  return first;
}

bool DecodeLane::stealable() const {
  if (!shared_) return false;
  const std::lock_guard lock(mutex_);
  return !queue_.empty();
}

// Samples of the front's format, in order; empty after close().
std::vector<EncodedSample> DecodeLane::take_group() {
  std::vector<EncodedSample> group;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
  // Decoders are fastest with large groups, so this waits a little for more samples.
  changed_.wait_for(lock, kGather, [&] { return closed_ || queue_.size() >= most_; });
  if (closed_) return group;
  if (queue_.empty()) return group;  // stolen meanwhile
  const bool gray = queue_.front().image.planes.colour == Colour::kGray;
  for (auto it = queue_.begin(); it != queue_.end() && group.size() < most_;) {
    if ((it->image.planes.colour == Colour::kGray) != gray) {
      ++it;
      continue;
    }
    if (!it->batch->cancelled.load(std::memory_order_relaxed)) group.push_back(std::move(*it));
    it = queue_.erase(it);
  }
  if (!queue_.empty()) changed_.notify_one();  // for another decoder
  return group;
}

void DecodeLane::run(BatchDecoder& decoder, SampleWorker& worker) {
  for (;;) {
    Recorder& recorder = hooks_->recorder();
    const int64_t idle = recorder.recording() ? now_ns() : 0;
    const std::vector<EncodedSample> group = take_group();
    if (idle != 0) recorder.add("idle", idle, now_ns());
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
    }
    if (!group.empty()) make(decoder, worker, group);
  }
}

// Halves a refused group until the refused file is alone: the other files are still decoded by the device.
void DecodeLane::make(BatchDecoder& decoder, SampleWorker& worker, std::span<const EncodedSample> group) {
  std::vector<EncodedImage> images;
  for (const EncodedSample& one : group) images.push_back(one.image);
  const int64_t begin = now_ns();
  bool decoded = false;
  std::string refusal;
  try {
    refusal = decoder.decode(images);
    decoded = refusal.empty();
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  const int64_t end = now_ns();
  hooks_->recorder().add("device decode", begin, end, decoded ? static_cast<int64_t>(group.size()) : 0);
  {
    const std::lock_guard lock(mutex_);
    counts_.busy_ns += end - begin;
    if (decoded) counts_.decoded += static_cast<int64_t>(group.size());
    if (!decoded && group.size() == 1 && ++counts_.returned == 1) counts_.refusal = refusal;
    if (closed_) return;
  }
  if (decoded) {
    for (const EncodedSample& one : group) hooks_->sample_made(one.batch);
  } else if (group.size() == 1) {
    hooks_->make_here(worker, group[0].batch, group[0].sample, group[0].image.bytes);
  } else {
    make(decoder, worker, group.first(group.size() / 2));
    make(decoder, worker, group.subspan(group.size() / 2));
  }
}

void DecodeLane::close() {
  const std::lock_guard once(closing_);
  std::deque<EncodedSample> dropped;  // destroyed without the lock
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(queue_);
  }
  changed_.notify_all();
  threads_.join();
}

DecodeLane::Counts DecodeLane::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace headrace
