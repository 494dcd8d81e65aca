// One loop for each way in which samples are stored. Compilers make vectors of them.
#include "core/audio/wav_samples.h"

#include <cmath>
#include <cstring>
#include <string>

namespace headrace {
namespace {

template <class T>
T load(const uint8_t* from) {
  T value{};
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// Each product is FFmpeg's: the integer becomes a float32, rounded to nearest, times a power of two.
struct U8 {
  static constexpr size_t kBytes = 1;
  static float at(const uint8_t* from) { return static_cast<float>(from[0] - 128) * 0x1p-7f; }
};
struct S16 {
  static constexpr size_t kBytes = 2;
  static float at(const uint8_t* from) { return static_cast<float>(load<int16_t>(from)) * 0x1p-15f; }
};
struct S24 {
  static constexpr size_t kBytes = 3;
  static float at(const uint8_t* from) {
    const uint32_t word = uint32_t{from[0]} << 8 | uint32_t{from[1]} << 16 | uint32_t{from[2]} << 24;
    return static_cast<float>(static_cast<int32_t>(word)) * 0x1p-31f;
  }
};
struct S32 {
  static constexpr size_t kBytes = 4;
  static float at(const uint8_t* from) { return static_cast<float>(load<int32_t>(from)) * 0x1p-31f; }
};
struct F32 {
  static constexpr size_t kBytes = 4;
  static float at(const uint8_t* from) { return load<float>(from); }
};
struct F64 {
  static constexpr size_t kBytes = 8;
  static float at(const uint8_t* from) { return static_cast<float>(load<double>(from)); }
};

template <class Stored>
void mix(float weight, const uint8_t* from, size_t frames, float* to) {
  for (size_t i = 0; i < frames; ++i, from += 2 * Stored::kBytes) {
    to[i] = Stored::at(from) * weight + Stored::at(from + Stored::kBytes) * weight;
  }
}

template <class Stored, size_t kChannels>
void split(const uint8_t* from, size_t frames, float* to, size_t stride) {
  for (size_t channel = 0; channel < kChannels; ++channel, to += stride) {
    const uint8_t* stored = from + channel * Stored::kBytes;
    for (size_t i = 0; i < frames; ++i) to[i] = Stored::at(stored + i * kChannels * Stored::kBytes);
  }
}

template <class Stored>
void split_many(size_t channels, const uint8_t* from, size_t frames, float* to, size_t stride) {
  for (size_t channel = 0; channel < channels; ++channel, to += stride) {
    const uint8_t* stored = from + channel * Stored::kBytes;
    for (size_t i = 0; i < frames; ++i, stored += channels * Stored::kBytes) to[i] = Stored::at(stored);
  }
}

template <class Stored>
void convert(const WavHeader& header, const Clip& clip, const uint8_t* from, size_t frames, float* to, size_t stride) {
  if (clip.channels != header.channels) return mix<Stored>(*clip.stereo_weight, from, frames, to);
  if (header.channels == 1) return split<Stored, 1>(from, frames, to, stride);
  if (header.channels == 2) return split<Stored, 2>(from, frames, to, stride);
  split_many<Stored>(static_cast<size_t>(header.channels), from, frames, to, stride);
}

}  // namespace

int64_t Clip::begin(int64_t total, double draw) const {
  const int64_t last = total - samples;
  if (last <= 0 || place == Place::kStart) return 0;
  if (place == Place::kCentre) return last / 2;
  const double at = std::floor(draw * static_cast<double>(last + 1));
  return std::min(last, static_cast<int64_t>(at));
}

void check_clip(const WavHeader& header, const Clip& clip) {
  if (header.sample_rate != clip.sample_rate) {
    throw NotPlainWav("a WAV of " + std::to_string(header.sample_rate) + " Hz");
  }
  if ((clip.codings >> static_cast<int>(header.coding) & 1) == 0) {
    throw NotPlainWav("a WAV whose samples the installed FFmpeg converts in another way");
  }
  if (header.channels == clip.channels) return;
  // FFmpeg adds the channels of float64 samples in float64.
  const bool adds = clip.channels == 1 && header.is_stereo() && header.coding != WavCoding::kF64;
  if (!adds || !clip.stereo_weight) throw NotPlainWav("a WAV of " + std::to_string(header.channels) + " channels");
}

void convert_samples(const WavHeader& header, const Clip& clip, const uint8_t* from, size_t frames, float* to,
                     size_t stride) {
  switch (header.coding) {
    case WavCoding::kU8:
      return convert<U8>(header, clip, from, frames, to, stride);
    case WavCoding::kS16:
      return convert<S16>(header, clip, from, frames, to, stride);
    case WavCoding::kS24:
      return convert<S24>(header, clip, from, frames, to, stride);
    case WavCoding::kS32:
      return convert<S32>(header, clip, from, frames, to, stride);
    case WavCoding::kF32:
      return convert<F32>(header, clip, from, frames, to, stride);
    case WavCoding::kF64:
      return convert<F64>(header, clip, from, frames, to, stride);
  }
}

}  // namespace headrace
