// What a batch sends to the device: pinned memory that workers fill, and the device's copy of it. Areas are used again,
// but only once the device has read them.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/fork_guard.h"
#include "gpu/device/owned.h"
#include "gpu/kernel/job_builder.h"

namespace headrace {

/// The staged bytes of one batch, in blocks of pinned memory with a block of the device for each. It takes more blocks
/// as they are needed and keeps them, so that steady state allocates nothing. Blocks are taken in the thread that will
/// fill them: on the memory node where it runs.
class StagingArea final : public Stager {
 public:
  explicit StagingArea(std::shared_ptr<Device> device);

  StagedBytes take(size_t bytes) override;
  /// Pinned memory alone, or the device's alone. Any thread. Throws OutOfDeviceMemory, as take() does.
  uint8_t* take_pinned(size_t bytes);
  uint8_t* take_device(size_t bytes) override;
  /// Puts the copies of all that was taken on the stream.
  void upload(Stream stream);
  /// Everything may be taken again.
  void reset();
  /// Bytes of pinned memory it holds.
  size_t held() const;

 private:
  struct Block {
    OwnedPinned host;    // empty in on_device_
    OwnedMemory device;  // empty in pinned_
    size_t bytes = 0, used = 0;
  };
  using Blocks = std::vector<Block>;
  StagedBytes take_from(Blocks& blocks, size_t bytes, bool pinned, bool device);

  const std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;
  Blocks both_, pinned_, on_device_;  // guarded by mutex_
};

/// A few areas. An area is held by a batch, then read by the device, then free.
class StagingRing : public std::enable_shared_from_this<StagingRing> {
 public:
  /// `most`: areas that may be in use; further batches wait until the device has read one. Held by a shared_ptr, which
  /// leases share.
  StagingRing(std::shared_ptr<Device> device, int most);
  ~StagingRing();  // waits for what the device still reads
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  /// An empty area in a batch's hands. Dropped without release(), it is free at once.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease() { give_back(); }
    StagingArea& operator*() const { return *slot_->area; }
    StagingArea* operator->() const { return slot_->area.get(); }
    explicit operator bool() const { return ring_ != nullptr; }
    /// The area is free again when all that is on the stream now is done. Ends the lease.
    void release(Stream stream);

   private:
    friend class StagingRing;
    struct Slot {
      std::unique_ptr<StagingArea> area;
      OwnedEvent read;  // by the device
      enum class State { kFree, kHeld, kBeingRead } state = State::kFree;
      uint64_t since = 0;  // when the device was told to read it
    };
    Lease(std::shared_ptr<StagingRing> ring, Slot* slot) : ring_(std::move(ring)), slot_(slot) {}
    void give_back() noexcept;

    std::shared_ptr<StagingRing> ring_;
    Slot* slot_ = nullptr;
  };

  /// Blocks while all areas are in use and the device has not read one. Where every area is held by a batch, there is
  /// one more instead: waiting would never end. Any thread.
  Lease acquire();
  /// Areas that exist. Any thread.
  size_t areas() const;
  /// Bytes of pinned memory in all of them. Any thread.
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
