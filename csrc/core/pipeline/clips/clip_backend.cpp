// Leases a slot for each batch, and reads clips from files on one thread.
#include "core/pipeline/clips/clip_backend.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/base/error.h"
#include "core/io/source/file_ranges.h"

namespace headrace {
namespace {

/// Returns the path of a regular file. Throws NotPlainWav for a pipe, which must not be opened here: FFmpeg may read it,
/// once.
const char* regular(const char* path) {
  struct stat info{};
  if (::stat(path, &info) == 0 && !S_ISREG(info.st_mode)) throw NotPlainWav("not a regular file");
  return path;
}

/// A regular file, whose beginning is read once.
class WavFile final : public WavBytes {
 public:
  explicit WavFile(const char* path) : file_(regular(path)) {
    if (const std::optional<FileState> state = state_of(file_)) size_ = state->stamp.size;
    head_ = read_at(file_, first_.data(), std::min<uint64_t>(size_, first_.size()), 0);
  }

  uint64_t size() const override { return size_; }
  uint64_t bytes_read() const { return read_; }

  void read(std::span<uint8_t> to, uint64_t offset) const override {
    read_ += to.size();
    if (offset + to.size() <= head_) {
      std::memcpy(to.data(), first_.data() + offset, to.size());
    } else if (read_at(file_, to.data(), to.size(), offset) < to.size()) {
      throw Error(Stage::kRead, "the file became shorter while it was read", EIO);
    }
  }

 private:
  const OpenFile file_;
  std::array<uint8_t, 4096> first_;
  uint64_t size_ = 0, head_ = 0;
  mutable uint64_t read_ = 0;
};

class ClipWorker final : public SampleWorker {
 public:
  explicit ClipWorker(const Clip& clip) : clip_(clip) {}

  bool make(std::span<const uint8_t> /*bytes*/, const double* /*draws*/, const std::shared_ptr<Batch>& /*batch*/,
            int /*sample*/, bool /*may_offload*/) override {
    throw std::logic_error("this pipeline reads clips of files; it decodes no bytes");
  }

  void make_from_pixels(const RawImage& /*image*/, const double* /*draws*/, Batch& /*batch*/, int /*sample*/) override {
    throw std::logic_error("this pipeline reads clips of files; it makes no images");
  }

  bool reads_files() const override { return true; }

  std::optional<std::string> make_from_file(const char* path, const double* draws, Batch& batch, int sample) override {
    const int64_t begin = now_ns();
    try {
      const WavFile file(path);
      auto* const to = reinterpret_cast<float*>(batch.memory + static_cast<size_t>(batch.place(sample)) *
                                                                   ClipBackend::sample_bytes(clip_));
      const int64_t length =
          read_clip(file, clip_, draws[0], to, [&](size_t size) { return buffer_.make_room(size, 0); });
      batch.sizes[static_cast<size_t>(sample)] = {static_cast<int>(length), clip_.channels};
      stats.add(Clock::kRead, begin, now_ns());
      stats.add_bytes(file.bytes_read());
    } catch (const NotPlainWav& reason) {
      stats.add(Clock::kRead, begin, now_ns());
      return reason.what();
    }
    return std::nullopt;
  }

 private:
  const Clip clip_;
  ReadBuffer buffer_;
};

}  // namespace

void ClipBackend::prepare(Batch& batch, BatchMemory memory) {
  slots_.prepare(batch, memory, static_cast<size_t>(batch.size()) * sample_bytes(clip_));
}

std::unique_ptr<SampleWorker> ClipBackend::make_worker() { return std::make_unique<ClipWorker>(clip_); }

}  // namespace headrace
