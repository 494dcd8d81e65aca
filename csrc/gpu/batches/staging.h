// Staging memory of batches: pinned memory that workers fill, and its copy on the device. An area is reused once the
// device has read it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/fork_guard.h"
#include "gpu/device/owned.h"
#include "gpu/kernel/job_builder.h"

namespace headrace {

/// The staged bytes of one batch, in blocks of pinned memory with a block of device memory for each. Blocks are
/// allocated on demand and kept, so that nothing is allocated in the steady state. The thread that will fill a block
/// allocates it, so that it is on the thread's NUMA node.
class StagingArea final : public Stager {
 public:
  explicit StagingArea(std::shared_ptr<Device> device);

  /// See Stager. The memory is valid until reset(). Throws OutOfDeviceMemory.
  StagedBytes take(size_t bytes) override;
  /// Pinned memory alone, or device memory alone; otherwise as take().
  uint8_t* take_pinned(size_t bytes);
  uint8_t* take_device(size_t bytes) override;
  /// Puts copies of all memory taken with take() on the stream. Any thread where the device is current.
  void upload(Stream stream);
  /// Makes all memory available again. Any thread.
  void reset();
  /// Bytes of pinned memory that are allocated. Any thread.
  size_t held() const;

 private:
  struct StagingBlock {
    OwnedPinned host;    // empty in on_device_
    OwnedMemory device;  // empty in pinned_
    size_t bytes = 0, used = 0;
  };
  using Blocks = std::vector<StagingBlock>;
  StagedBytes take_from(Blocks& blocks, size_t bytes, bool pinned, bool device);

  const std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;
  Blocks both_, pinned_, on_device_;  // guarded by mutex_
};

/// A ring of areas. A batch holds an area, then the device reads it, then it is free.
class StagingRing : public std::enable_shared_from_this<StagingRing> {
 public:
  /// `most`: number of areas at which acquire() waits, if it can, instead of making one. Must be owned by a shared_ptr,
  /// which leases share.
  StagingRing(std::shared_ptr<Device> device, int most);
  ~StagingRing();  // blocks while the device still reads an area
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  /// The right to fill an area. Destroyed without release(), it frees the area at once.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease() { give_back(); }
    StagingArea& operator*() const { return *slot_->area; }
    StagingArea* operator->() const { return slot_->area.get(); }
    explicit operator bool() const { return ring_ != nullptr; }
    /// Ends the lease; the area is free once all work that is on the stream now is done.
    void release(Stream stream);

   private:
    friend class StagingRing;
    struct Slot {
      std::unique_ptr<StagingArea> area;
      OwnedEvent read;  // the device has read the area
      enum class State { kFree, kHeld, kBeingRead } state = State::kFree;
      uint64_t since = 0;  // clock_ when the read was put on the stream
    };
    Lease(std::shared_ptr<StagingRing> ring, Slot* slot) : ring_(std::move(ring)), slot_(slot) {}
    void give_back() noexcept;

    std::shared_ptr<StagingRing> ring_;
    Slot* slot_ = nullptr;
  };

  /// An empty area. Blocks while `most` areas are in use and the device is reading one of them. If batches hold all of
  /// them, waiting might never end, so the ring grows. Any thread. Throws std::runtime_error where the device refuses.
  Lease acquire();
  /// Number of areas. Any thread.
  size_t areas() const;
  /// Bytes of pinned memory in all areas. Any thread.
  size_t held() const;

 private:
  using Slot = Lease::Slot;

  const std::shared_ptr<Device> device_;
  const size_t most_;
  const ForkGuard fork_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Slot>> slots_;  // guarded by mutex_, as is clock_
  uint64_t clock_ = 0;
};

}  // namespace headrace
