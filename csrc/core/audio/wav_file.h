// A WAV file on disk, open while one clip of it is read.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/audio/wav_header.h"
#include "core/io/source/descriptor_cache.h"

namespace headrace {

/// The beginning of the file is read once. One thread.
class WavFile final : public WavBytes {
 public:
  /// Throws Error(kRead), and NotPlainWav for what is no regular file.
  explicit WavFile(const char* path);

  uint64_t size() const override { return size_; }
  /// Also throws Error(kRead) if the file became shorter.
  void read(std::span<uint8_t> to, uint64_t offset) const override;
  /// Bytes that read() has returned.
  uint64_t bytes_read() const { return read_; }

 private:
  const OpenFile file_;
  std::array<uint8_t, 4096> first_;
  uint64_t size_ = 0, head_ = 0;
  mutable uint64_t read_ = 0;
};

}  // namespace headrace
