// Leases a slot for each batch, and reads clips from files on one thread.
#include "core/pipeline/clips/clip_backend.h"

#include <stdexcept>
#include <string>

#include "core/audio/wav_file.h"

namespace headrace {
namespace {

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
