// Allocates blocks of staging memory and recycles areas once the device has read them.
#include "gpu/batches/staging.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kBlockBytes = size_t{8} << 20;  // about sixty crops of ImageNet files

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

StagingArea::StagingArea(std::shared_ptr<Device> device) : device_(std::move(device)) {}

StagedBytes StagingArea::take(size_t bytes) { return take_from(both_, bytes, true, true); }
uint8_t* StagingArea::take_pinned(size_t bytes) { return take_from(pinned_, bytes, true, false).host; }
uint8_t* StagingArea::take_device(size_t bytes) { return take_from(on_device_, bytes, false, true).device; }

StagedBytes StagingArea::take_from(Blocks& blocks, size_t bytes, bool pinned, bool device) {
  bytes = aligned(std::max<size_t>(bytes, 1));
  const std::lock_guard lock(mutex_);
  for (StagingBlock& block : blocks) {
    if (block.bytes - block.used < bytes) continue;
    const size_t at = std::exchange(block.used, block.used + bytes);
    return {pinned ? block.host.get() + at : nullptr, device ? block.device.get() + at : nullptr};
  }
  StagingBlock block;
  const DeviceScope current(*device_);  // the calling thread may be one of Python's, with another device
  block.bytes = std::max(bytes, kBlockBytes);
  block.used = bytes;
  if (pinned) block.host = OwnedPinned(device_, block.bytes);
  if (device) block.device = OwnedMemory(device_, block.bytes);
  const StagedBytes taken{block.host.get(), block.device.get()};
  blocks.push_back(std::move(block));
  return taken;
}

void StagingArea::upload(Stream stream) {
  const std::lock_guard lock(mutex_);
  for (const StagingBlock& block : both_) {
    if (block.used > 0) device_->copy_to_device(block.device.get(), block.host.get(), block.used, stream);
  }
}

void StagingArea::reset() {
  const std::lock_guard lock(mutex_);
  for (Blocks* blocks : {&both_, &pinned_, &on_device_}) {
    for (StagingBlock& block : *blocks) block.used = 0;
  }
}

size_t StagingArea::held() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const Blocks* blocks : {&both_, &pinned_}) {
    for (const StagingBlock& block : *blocks) sum += block.bytes;
  }
  return sum;
}

StagingRing::StagingRing(std::shared_ptr<Device> device, int most)
    : device_(std::move(device)), most_(static_cast<size_t>(most)) {}

StagingRing::~StagingRing() {
  if (fork_.forked()) return;  // the device belongs to the parent
  for (const auto& slot : slots_) {
    try {
      const DeviceScope current(*device_);
      if (slot->state == Slot::State::kBeingRead) device_->synchronize(slot->read.get());
    } catch (...) {  // a lost device reads nothing
    }
  }
}

StagingRing::Lease StagingRing::acquire() {
  std::unique_lock lock(mutex_);
  Slot* oldest = nullptr;
  for (const auto& slot : slots_) {
    if (slot->state == Slot::State::kBeingRead && device_->happened(slot->read.get())) slot->state = Slot::State::kFree;
    if (slot->state == Slot::State::kFree) {
      slot->state = Slot::State::kHeld;
      slot->area->reset();
      return {shared_from_this(), slot.get()};
    }
    if (slot->state == Slot::State::kBeingRead && (oldest == nullptr || slot->since < oldest->since)) {
      oldest = slot.get();
    }
  }
  if (oldest != nullptr && slots_.size() >= most_) {
    oldest->state = Slot::State::kHeld;
    lock.unlock();
    try {
      device_->synchronize(oldest->read.get());
    } catch (...) {
      lock.lock();
      oldest->state = Slot::State::kBeingRead;
      throw;
    }
    oldest->area->reset();
    return {shared_from_this(), oldest};
  }
  auto slot = std::make_unique<Slot>();
  slot->area = std::make_unique<StagingArea>(device_);
  slot->read = OwnedEvent(device_);
  slot->state = Slot::State::kHeld;
  slots_.push_back(std::move(slot));
  return {shared_from_this(), slots_.back().get()};
}

size_t StagingRing::areas() const {
  const std::lock_guard lock(mutex_);
  return slots_.size();
}

size_t StagingRing::held() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& slot : slots_) sum += slot->area->held();
  return sum;
}

StagingRing::Lease& StagingRing::Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    give_back();
    ring_ = std::move(other.ring_);
    slot_ = other.slot_;
  }
  return *this;
}

void StagingRing::Lease::release(Stream stream) {
  ring_->device_->record(slot_->read.get(), stream);
  const std::shared_ptr<StagingRing> ring = std::move(ring_);
  const std::lock_guard lock(ring->mutex_);
  slot_->state = Slot::State::kBeingRead;
  slot_->since = ++ring->clock_;
}

void StagingRing::Lease::give_back() noexcept {
  if (ring_ == nullptr || ring_->fork_.forked()) return;
  const std::shared_ptr<StagingRing> ring = std::move(ring_);
  const std::lock_guard lock(ring->mutex_);
  slot_->state = Slot::State::kFree;
}

}  // namespace headrace
