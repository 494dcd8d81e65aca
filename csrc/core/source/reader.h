// Brings a blob's bytes into memory; one reader a worker, whose buffer is used again and again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/source/blob.h"

namespace headrace {

class Reader {
 public:
  /// What is read whole at most: of a JPEG, and of anything else.
  static constexpr size_t kMostJpeg = size_t{256} << 20, kMostOther = size_t{16} << 20;

  /// The blob's bytes, valid until the next call. Throws Error(kRead) with the operating system's errno; NeedsPillow
  /// for a file that is not to be read whole, of which Pillow, given its path, takes what it needs: a device, which may
  /// have no end, and what is larger than the above. A pipe can be read but once, and ends with EFBIG there. One file
  /// is open at a time, and only inside the call: open files are bounded by the number of workers.
  std::span<const uint8_t> read(const Blob& blob);

 private:
  std::unique_ptr<uint8_t[]> buffer_;
  size_t capacity_ = 0;
};

}  // namespace headrace
