// libFuzzer harness: the header of a WAV, and clips of it, on any bytes. No byte outside the file is read, and what is
// read of a plain file is in it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "audio/wav_samples.h"
#include "core/audio/wav_samples.h"

namespace {

using namespace headrace;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz_wav: %s\n", what);
  __builtin_trap();
}

void read(const test::ContentBytes& bytes, const WavHeader& header, Clip clip, double draw) {
  std::vector<float> made(static_cast<size_t>(clip.samples) * static_cast<size_t>(clip.channels));
  std::vector<uint8_t> stored;
  const int64_t length = read_clip(bytes, clip, draw, made.data(), [&](size_t size) {
    stored.assign(size, 0);
    return stored.data();
  });
  require(length == std::min<int64_t>(clip.samples, static_cast<int64_t>(header.frames)), "a clip of another length");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const test::ContentBytes bytes({data, size});
  WavHeader header;
  try {
    header = read_wav_header(bytes);
  } catch (const NotPlainWav&) {
    return 0;
  }
  require(header.frames > 0 && header.channels >= 1 && header.channels <= WavHeader::kMostChannels, "no frames");
  require(header.begin <= size && header.frames <= (size - header.begin) / header.frame_bytes(), "frames outside");
  Clip clip;
  clip.sample_rate = header.sample_rate;
  clip.place = Clip::Place::kDrawn;
  clip.stereo_weight = 0.5f;
  for (const int64_t samples : {int64_t{1}, int64_t{100}, static_cast<int64_t>(header.frames)}) {
    clip.samples = samples;
    clip.channels = header.channels;
    for (const double draw : {0.0, 0.5, 1.0}) read(bytes, header, clip, draw);
    if (header.is_stereo() && header.coding != WavCoding::kF64) {
      clip.channels = 1;
      read(bytes, header, clip, 0.3);
    }
  }
  return 0;
}
