// Brings a blob's bytes into memory; one reader a worker, whose buffer is used again and again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "blob.h"

namespace headrace {

class Reader {
 public:
  /// The blob's bytes, valid until the next call. Throws Error(kRead) with the operating system's errno.
  /// One file is open at a time, and only inside the call: open files are bounded by the number of workers.
  std::span<const uint8_t> read(const Blob& blob);

 private:
  std::unique_ptr<uint8_t[]> buffer_;
  size_t capacity_ = 0;
};

}  // namespace headrace
