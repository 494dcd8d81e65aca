// Where the samples of a plain WAV file are, and how they are stored; any other file is left to a library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>

namespace headrace {

/// How a sample of one channel is stored: little-endian, integers signed except for 8 bits.
enum class WavCoding : uint8_t { kU8, kS16, kS24, kS32, kF32, kF64 };

inline constexpr int sample_bytes(WavCoding coding) {
  constexpr int kBytes[] = {1, 2, 3, 4, 4, 8};
  return kBytes[static_cast<int>(coding)];
}

/// The samples of a file. A frame is one sample of each channel, in adjacent bytes.
struct WavHeader {
  WavCoding coding = WavCoding::kS16;
  int channels = 0;  // from 1 to kMostChannels
  int sample_rate = 0;
  uint32_t speakers = 0;  // a bit for each channel's loudspeaker; 0: the usual ones
  uint64_t begin = 0;     // the first byte of the first frame
  uint64_t frames = 0;    // at least 1; all of them are in the file

  static constexpr int kMostChannels = 8;
  /// Whether the channels are left and right, and not two others.
  bool is_stereo() const { return channels == 2 && (speakers == 0 || speakers == 3); }
  size_t frame_bytes() const { return static_cast<size_t>(channels) * static_cast<size_t>(sample_bytes(coding)); }
};

/// Bytes that can be read at any offset: of a file, or in memory.
class WavBytes {
 public:
  virtual ~WavBytes() = default;
  virtual uint64_t size() const = 0;
  /// Fills `to` with the bytes from `offset` on, all of which must exist. Throws Error(kRead).
  virtual void read(std::span<uint8_t> to, uint64_t offset) const = 0;
};

/// Not a failure: the file is not a plain WAV, so a library decodes or refuses it.
class NotPlainWav : public std::exception {
 public:
  explicit NotPlainWav(std::string reason) : reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }

 private:
  std::string reason_;
};

/// Throws NotPlainWav unless all chunks are in the file, one of them has PCM or float samples, and no chunk is one that
/// FFmpeg may give a meaning for the samples; throws what `bytes` throws.
WavHeader read_wav_header(const WavBytes& bytes);

}  // namespace headrace
