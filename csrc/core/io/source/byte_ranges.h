// Samples that are parts of something larger, and the memory that they are read into.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/io/source/blob.h"

namespace headrace {

/// The bytes of one sample after another: in memory that is reused, or in shared memory.
class ReadBuffer {
 public:
  uint8_t* data() const { return own_.get(); }
  size_t capacity() const { return capacity_; }
  /// Room for `wanted` bytes in data(), whose first `filled` bytes stay.
  uint8_t* make_room(size_t wanted, size_t filled);
  /// Keeps shared memory until the next call.
  void hold(std::shared_ptr<const void> memory) { held_ = std::move(memory); }

 private:
  std::unique_ptr<uint8_t[]> own_;
  size_t capacity_ = 0;
  std::shared_ptr<const void> held_;
};

inline const std::atomic<bool> kNeverCancelled{false};

/// A table whose blobs refer to the table itself.
class ByteRanges : public BlobTable {
 public:
  Blob at(int64_t row) const override {
    Blob blob;
    blob.ranges = this;
    blob.row = row;
    return blob;
  }
  /// A row's bytes, valid until the next use of `buffer`. Throws Error(kRead). While it waits for other machines, it
  /// gives up soon after `cancelled` is set. Any thread.
  virtual std::span<const uint8_t> read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const = 0;
  /// Call when a row is read soon: begins to transfer its bytes from a disk, where that helps. Any thread.
  virtual void prepare(int64_t /*row*/) const noexcept {}
};

}  // namespace headrace
