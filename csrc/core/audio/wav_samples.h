// Stored samples as float32 waveforms: the values that FFmpeg's resampling library gives them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/audio/wav_header.h"

namespace headrace {

/// Which part of a file becomes a waveform, and how. A waveform is (channels, samples) float32, in [-1, 1] for
/// integers.
struct Clip {
  enum class Place : uint8_t { kStart, kCentre, kDrawn };

  int64_t samples = 0;  // of each channel; where the file has fewer, zeros follow
  int sample_rate = 0;
  int channels = 1;
  Place place = Place::kStart;
  std::optional<float> stereo_weight;  // of left and right in their sum, which is one channel; without: by a library
  uint32_t codings = ~0u;              // bit WavCoding: whether these samples are converted here

  /// The first sample of a file that has `total`. `draw`: uniform in [0, 1); read for kDrawn alone.
  int64_t begin(int64_t total, double draw) const;
};

/// Throws NotPlainWav where a library has to make the waveform: another rate or number of channels.
void check_clip(const WavHeader& header, const Clip& clip);

/// Makes `frames` samples of each channel. `from`: stored frames. `to`: row c of the waveform begins at to + c *
/// `stride`. `header` must have passed check_clip.
void convert_samples(const WavHeader& header, const Clip& clip, const uint8_t* from, size_t frames, float* to,
                     size_t stride);

/// Reads the part of `bytes` that `clip` names into `to`, (channels, samples), and returns how many samples of each
/// channel come from the file. `buffer` is called with a size, and returns memory. Throws as read_wav_header and
/// check_clip do.
template <typename Buffer>
int64_t read_clip(const WavBytes& bytes, const Clip& clip, double draw, float* to, Buffer buffer) {
  const WavHeader header = read_wav_header(bytes);
  check_clip(header, clip);
  const auto total = static_cast<int64_t>(header.frames);
  const int64_t begin = clip.begin(total, draw), count = std::min(clip.samples, total - begin);
  const size_t frames = static_cast<size_t>(count), stride = static_cast<size_t>(clip.samples);
  const size_t size = frames * header.frame_bytes();
  const uint64_t offset = header.begin + static_cast<uint64_t>(begin) * header.frame_bytes();
  if (header.coding == WavCoding::kF32 && header.channels == 1 && clip.channels == 1) {
    bytes.read({reinterpret_cast<uint8_t*>(to), size}, offset);
  } else {
    uint8_t* const stored = buffer(size);
    bytes.read({stored, size}, offset);
    convert_samples(header, clip, stored, frames, to, stride);
  }
  for (int channel = 0; channel < clip.channels; ++channel) {
    std::fill(to + static_cast<size_t>(channel) * stride + frames, to + static_cast<size_t>(channel + 1) * stride,
              0.0f);
  }
  return count;
}

}  // namespace headrace
