// Headers of WAV files, and clips of their samples, from memory.
#include <doctest/doctest.h>

#include <random>

#include "audio/wav_samples.h"
#include "core/audio/wav_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

const WavContent kSamples = {1, 0, 0xFF, 0x7F, 0, 0x80, 0xFE, 0xFF};  // 16-bit: 1, 32767, -32768, -2

WavContent plain() { return riff_of({wav_chunk("fmt ", wav_format(1, 2, 8000, 16)), wav_chunk("data", kSamples)}); }

Clip clip_of(int64_t samples, int channels) {
  Clip clip;
  clip.samples = samples;
  clip.sample_rate = 8000;
  clip.channels = channels;
  return clip;
}

/// The waveform; empty where the file is left to a library.
std::vector<float> waveform(const WavContent& file, const Clip& clip, double draw = 0) {
  std::vector<float> made(static_cast<size_t>(clip.samples * clip.channels), 77.0f);
  WavContent stored;
  try {
    read_clip(ContentBytes(file), clip, draw, made.data(), [&](size_t size) {
      stored.resize(size);
      return stored.data();
    });
  } catch (const NotPlainWav&) {
    return {};
  }
  return made;
}

}  // namespace

TEST_CASE("a header says where the frames are") {
  const WavHeader header = read_wav_header(ContentBytes(plain()));
  CHECK(header.coding == WavCoding::kS16);
  CHECK(header.channels == 2);
  CHECK(header.sample_rate == 8000);
  CHECK(header.begin == 44);
  CHECK(header.frames == 2);
  CHECK(header.frame_bytes() == 4);
  CHECK(header.is_stereo());
}

TEST_CASE("channels are rows, and zeros follow a short file") {
  const float one = 1.0f / 32768;
  CHECK(waveform(plain(), clip_of(3, 2)) == std::vector<float>{one, -1, 0, 32767 * one, -2 * one, 0});
  CHECK(waveform(plain(), clip_of(1, 2)) == std::vector<float>{one, 32767 * one});
}

TEST_CASE("the clip's place") {
  Clip clip = clip_of(1, 2);
  clip.place = Clip::Place::kDrawn;
  CHECK(waveform(plain(), clip, 0.5) == std::vector<float>{-1, -2.0f / 32768});
  CHECK(clip.begin(10, 0.0) == 0);
  CHECK(clip.begin(10, 0.9999) == 9);
  CHECK(clip.begin(10, 1.0) == 9);
  clip.place = Clip::Place::kCentre;
  CHECK(clip.begin(10, 0.9) == 4);
  CHECK(clip.begin(0, 0.9) == 0);
}

TEST_CASE("left and right become one channel where their weight is known") {
  CHECK(waveform(plain(), clip_of(2, 1)).empty());
  Clip clip = clip_of(2, 1);
  clip.stereo_weight = 0.5f;
  CHECK(waveform(plain(), clip) == std::vector<float>{0.5f, 0.5f * -1 + 0.5f * (-2.0f / 32768)});
}

TEST_CASE("what the clip does not allow is left to a library") {
  Clip clip = clip_of(2, 2);
  clip.sample_rate = 16000;
  CHECK(waveform(plain(), clip).empty());
  clip = clip_of(2, 2);
  clip.codings = ~(1u << static_cast<int>(WavCoding::kS16));
  CHECK(waveform(plain(), clip).empty());
  CHECK(waveform(plain(), clip_of(2, 3)).empty());
}

TEST_CASE("all codings") {
  const auto made = [](int tag, int bits, const WavContent& samples) {
    return waveform(riff_of({wav_chunk("fmt ", wav_format(tag, 1, 8000, bits)), wav_chunk("data", samples)}),
                    clip_of(2, 1));
  };
  CHECK(made(1, 8, {0, 255}) == std::vector<float>{-1, 127.0f / 128});
  CHECK(made(1, 24, {0, 0, 0x80, 0xFF, 0xFF, 0x7F}) == std::vector<float>{-1, 8388607.0f / 8388608});
  CHECK(made(1, 32, {0, 0, 0, 0x80, 0xFF, 0xFF, 0xFF, 0x7F}) == std::vector<float>{-1, 1});
  CHECK(made(3, 32, {0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0}) == std::vector<float>{1, -2});
  CHECK(made(3, 64, {0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0, 0, 0, 0, 0, 0, 0, 0xC0}) == std::vector<float>{1, -2});
}

TEST_CASE("no file reads a byte outside it") {
  std::mt19937 random(3);
  const WavContent whole = riff_of({wav_chunk("JUNK", WavContent(5)), wav_chunk("fmt ", wav_format(1, 2, 8000, 16)),
                                    wav_chunk("data", WavContent(400, 9)), wav_chunk("LIST", WavContent(9))});
  size_t read = 0;
  for (size_t length = 0; length <= whole.size(); ++length) {
    read += waveform({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length)}, clip_of(50, 2)).size();
  }
  CHECK(read == 300);  // also without the last chunk, and without its padding
  for (int round = 0; round < 20000; ++round) {
    WavContent damaged = whole;
    for (int change = 0; change < 3; ++change) damaged[random() % 100] = static_cast<uint8_t>(random());
    waveform(damaged, clip_of(50, 2), 0.9);
  }
}
