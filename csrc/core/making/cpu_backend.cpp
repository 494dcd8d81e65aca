// Leases a slot for each batch and makes workers that write to it.
#include "core/making/cpu_backend.h"

#include <cstring>

#include "core/making/sample_maker.h"

namespace headrace {

CpuBackend::CpuBackend(SampleOptions options, const Kernels& kernels, size_t slots_kept)
    : options_(std::move(options)), kernels_(kernels), slots_kept_(slots_kept) {
  lut_.resize(options_.lut.size());
  std::memcpy(lut_.data(), options_.lut.data(), options_.lut.size());
}

void CpuBackend::prepare(Batch& batch, BatchMemory memory) {
  batch.memory = memory.data;
  if (memory.data != nullptr) return;
  batch.slot = acquire(static_cast<size_t>(batch.size()) * options_.strides.sample_bytes);
  batch.memory = batch.slot.get();
}

std::unique_ptr<SampleWorker> CpuBackend::make_worker() {
  return std::make_unique<SampleMaker>(kernels_, options_, lut_.data());
}

// Batches have one size, except for a smaller last one. A batch larger than all before starts a new ring.
Lease CpuBackend::acquire(size_t bytes) {
  std::shared_ptr<SlotRing> current;
  {
    const std::lock_guard lock(mutex_);
    if (ring_ == nullptr || ring_->slot_bytes() < bytes) ring_ = SlotRing::make(bytes, slots_kept_);
    current = ring_;
  }
  return current->acquire();
}

void CpuBackend::retire() noexcept {
  const std::lock_guard lock(mutex_);
  if (ring_ != nullptr) ring_->retire();
}

size_t CpuBackend::slots() const {
  const std::lock_guard lock(mutex_);
  return ring_ == nullptr ? 0 : ring_->slots();
}

}  // namespace headrace
