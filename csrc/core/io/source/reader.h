// Reads a blob's bytes into memory. Each worker has one reader, which reuses its buffer.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "core/io/source/blob.h"
#include "core/io/source/byte_ranges.h"
#include "core/io/source/file_state.h"

namespace headrace {

/// A file's bytes, valid until the next use of `buffer`. `state`, if not null: set to the file's state if that was the
/// same before and after the read; otherwise to nullopt: the file was written meanwhile, so the bytes may be a mixture,
/// or it is not a regular file. Throws as Reader::read does.
std::span<const uint8_t> read_file(const char* path, ReadBuffer& buffer, std::optional<FileState>* state = nullptr);

class Reader {
 public:
  /// Largest files that are read as a whole, in bytes: JPEGs, and all others.
  static constexpr size_t kMostJpeg = size_t{256} << 20, kMostOther = size_t{16} << 20;

  /// The blob's bytes, valid until the next call. Throws Error(kRead) with errno if a system call fails, and with EFBIG
  /// for a pipe, which can be read only once, of more than kMostJpeg bytes. Throws NeedsPillow for a device, which may
  /// be endless, and for a file above these limits: Pillow opens it by path and reads only what it needs. Files are
  /// open only inside the call, so there are no more open files than workers. Ranges: see ByteRanges::read.
  std::span<const uint8_t> read(const Blob& blob, const std::atomic<bool>& cancelled = kNeverCancelled);

 private:
  ReadBuffer buffer_;
};

}  // namespace headrace
