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

/// The bytes of one sample after another: in memory that is reused, or in memory that others hold as well.
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

/// A table whose blobs refer to it.
class ByteRanges : public BlobTable {
 public:
  Blob at(int64_t row) const override {
    Blob blob;
    blob.ranges = this;
    blob.row = row;
    return blob;
  }
  /// A row's bytes, valid until the next use of `buffer`. Throws Error(kRead). Gives up soon after `cancelled` is set,
  /// where it waits for other machines. Any thread.
  virtual std::span<const uint8_t> read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const = 0;
  /// A row is read soon: begins to transfer its bytes from a disk, where that makes sense. Any thread.
  virtual void prepare(int64_t /*row*/) const noexcept {}
};

}  // namespace headrace
