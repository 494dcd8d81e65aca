// Groups of one format from the front of the queue.
#include "decode_lane.h"

#include <utility>

namespace headrace {

DecodeLane::DecodeLane(Decoders decoders, bool shared) : decoders_(std::move(decoders)), shared_(shared) {}

void DecodeLane::start(PipelineHooks& hooks, std::function<std::unique_ptr<SampleWorker>()> worker,
                       std::function<void()> enter) {
  hooks_ = &hooks;
  for (const auto& decoder : decoders_) {
    workers_.push_back(worker());
    threads_.emplace_back([this, &decoder, &own = *workers_.back(), enter] {
      enter();
      run(*decoder, own);
    });
  }
}

void DecodeLane::push(EncodedSample sample) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    queue_.push_back(std::move(sample));
  }
  changed_.notify_one();
  if (shared_) hooks_->help_wanted();
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
std::vector<EncodedSample> DecodeLane::take_group(int most) {
  std::vector<EncodedSample> group;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
  if (closed_) return group;
  const bool gray = queue_.front().image.planes.colour == Colour::kGray;
  for (auto it = queue_.begin(); it != queue_.end() && static_cast<int>(group.size()) < most;) {
    if ((it->image.planes.colour == Colour::kGray) != gray) {
      ++it;
      continue;
    }
    if (!it->batch->cancelled.load(std::memory_order_relaxed)) group.push_back(std::move(*it));
    it = queue_.erase(it);
  }
  return group;
}

void DecodeLane::run(BatchDecoder& decoder, SampleWorker& worker) {
  std::vector<EncodedImage> images;
  for (;;) {
    const std::vector<EncodedSample> group = take_group(decoder.most());
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
    }
    if (group.empty()) continue;  // of cancelled batches
    images.clear();
    for (const EncodedSample& one : group) images.push_back(one.image);
    const int64_t begin = now_ns();
    const bool decoded = decoder.decode(images);
    {
      const std::lock_guard lock(mutex_);
      counts_.busy_ns += now_ns() - begin;
      (decoded ? counts_.decoded : counts_.returned) += static_cast<int64_t>(group.size());
      if (closed_) return;
    }
    for (const EncodedSample& one : group) {
      if (decoded) {
        hooks_->sample_made(one.batch);
      } else {
        hooks_->make_here(worker, one.batch, one.sample, one.image.bytes);
      }
    }
  }
}

void DecodeLane::close() {
  std::deque<EncodedSample> dropped;  // without the lock
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(queue_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

DecodeLane::Counts DecodeLane::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace headrace
