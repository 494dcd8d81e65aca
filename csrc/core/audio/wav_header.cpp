// Walks the chunks of a RIFF or RF64 file. FFmpeg reads more kinds of files than this: what is not plain is refused.
#include "core/audio/wav_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

namespace headrace {
namespace {

constexpr uint64_t kIn64Bits = 0xFFFFFFFF;  // the size of an RF64's chunk, which its "ds64" gives
constexpr int kMostChunks = 64;
constexpr uint64_t kLooked = 16384;  // bytes of samples that are searched for the beginning of another stream

uint32_t u16(const uint8_t* from) { return static_cast<uint32_t>(from[0] | from[1] << 8); }
uint32_t u32(const uint8_t* from) { return u16(from) | u16(from + 2) << 16; }
uint64_t u64(const uint8_t* from) { return u32(from) | uint64_t{u32(from + 4)} << 32; }

bool is_named(const uint8_t* from, const char* name) { return std::memcmp(from, name, 4) == 0; }

/// Chunks of metadata that FFmpeg skips, or reads without any effect on the samples.
bool is_metadata(const uint8_t* name, uint64_t size) {
  if (is_named(name, "LIST")) return size >= 4;
  if (is_named(name, "bext")) return size >= 602;
  constexpr const char* kSkipped[] = {"fact", "JUNK", "junk", "PAD ", "FLLR", "cue ", "smpl", "inst",
                                      "PEAK", "iXML", "afsp", "acid", "DISP", "levl", "chna", "axml"};
  return std::any_of(std::begin(kSkipped), std::end(kSkipped), [&](const char* one) { return is_named(name, one); });
}

/// What follows the tag of a format in the GUID of an extensible one.
constexpr std::array<uint8_t, 14> kGuidEnd = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};

WavCoding coding_of(uint32_t tag, uint32_t bits) {
  if (tag == 1 && bits == 8) return WavCoding::kU8;
  if (tag == 1 && bits == 16) return WavCoding::kS16;
  if (tag == 1 && bits == 24) return WavCoding::kS24;
  if (tag == 1 && bits == 32) return WavCoding::kS32;
  if (tag == 3 && bits == 32) return WavCoding::kF32;
  if (tag == 3 && bits == 64) return WavCoding::kF64;
  throw NotPlainWav("a WAV of format " + std::to_string(tag) + " with " + std::to_string(bits) + " bits");
}

WavHeader parse_format(const WavBytes& bytes, uint64_t at, uint64_t size) {
  std::array<uint8_t, 40> format{};
  if (size != 16 && size != 18 && size != 40) throw NotPlainWav("a WAV whose format has an unusual size");
  bytes.read({format.data(), static_cast<size_t>(size)}, at);
  uint32_t tag = u16(&format[0]);
  const uint32_t channels = u16(&format[2]), rate = u32(&format[4]), frame = u16(&format[12]), bits = u16(&format[14]);
  uint32_t speakers = 0;
  if (size == 18 && u16(&format[16]) != 0) throw NotPlainWav("a WAV whose format has an unusual extension");
  if (size == 40) {
    if (tag != 0xFFFE || u16(&format[16]) != 22 || u16(&format[18]) != bits ||
        !std::equal(kGuidEnd.begin(), kGuidEnd.end(), &format[26])) {
      throw NotPlainWav("a WAV whose format has an unusual extension");
    }
    speakers = u32(&format[20]);
    tag = u16(&format[24]);
  }
  WavHeader header;
  header.coding = coding_of(tag, bits);
  if (channels < 1 || channels > WavHeader::kMostChannels) throw NotPlainWav("a WAV of unusually many channels");
  if (rate < 1 || rate > 0x7FFFFFFF) throw NotPlainWav("a WAV without a sample rate");
  header.channels = static_cast<int>(channels);
  header.sample_rate = static_cast<int>(rate);
  header.speakers = speakers;
  if (speakers != 0 && std::popcount(speakers) != header.channels) throw NotPlainWav("a WAV of unusual loudspeakers");
  if (frame != header.frame_bytes()) throw NotPlainWav("a WAV whose frames have an unusual size");
  return header;
}

/// Refuses 16-bit samples in which FFmpeg may find another stream: S/PDIF's or DTS's sync words.
void check_is_sound(const WavBytes& bytes, const WavHeader& header) {
  constexpr uint32_t kSyncs[] = {0x4E1FF872, 0x0180FE7F, 0x80017FFE, 0x00E8FF1F, 0xE8001FFF};
  std::vector<uint8_t> first(static_cast<size_t>(std::min(kLooked, header.frames * header.frame_bytes())));
  bytes.read(first, header.begin);
  uint32_t found = 0;
  for (size_t i = 0; i + 4 <= first.size(); i += 2) {
    uint32_t word = 0;
    std::memcpy(&word, &first[i], 4);
    for (const uint32_t sync : kSyncs) found |= static_cast<uint32_t>(word == sync);
  }
  if (found != 0) throw NotPlainWav("a WAV that may hold a compressed stream");
}

}  // namespace

WavHeader read_wav_header(const WavBytes& bytes) {
  const uint64_t end = bytes.size();
  if (end < 12) throw NotPlainWav("not a WAV");
  std::array<uint8_t, 36> head{};
  bytes.read({head.data(), 12}, 0);
  const bool is_long = is_named(head.data(), "RF64");
  if ((!is_long && !is_named(head.data(), "RIFF")) || !is_named(&head[8], "WAVE")) throw NotPlainWav("not a WAV");
  uint64_t at = 12, long_size = 0;
  if (is_long) {
    if (end < at + 36) throw NotPlainWav("a WAV that ends in its header");
    bytes.read(head, at);
    if (!is_named(head.data(), "ds64") || u32(&head[4]) != 28) throw NotPlainWav("an RF64 with an unusual beginning");
    long_size = u64(&head[16]);
    at += 36;
  }
  WavHeader header;
  for (int chunks = 0; end - at >= 8; ++chunks) {
    if (chunks == kMostChunks) throw NotPlainWav("a WAV of unusually many chunks");
    std::array<uint8_t, 8> chunk{};
    bytes.read(chunk, at);
    at += 8;
    uint64_t size = u32(&chunk[4]);
    const bool is_data = is_named(chunk.data(), "data");
    if (is_data && is_long) {
      if (size != kIn64Bits && size != long_size) throw NotPlainWav("an RF64 with two sizes");
      size = long_size;
    }
    if (size > end - at) throw NotPlainWav("a WAV that ends before its samples do");
    if (is_named(chunk.data(), "fmt ")) {
      if (header.channels != 0) throw NotPlainWav("a WAV of two formats");
      header = parse_format(bytes, at, size);
    } else if (is_data) {
      if (header.channels == 0 || header.frames != 0) throw NotPlainWav("a WAV whose chunks are in an unusual order");
      if (size == 0 || size % header.frame_bytes() != 0) throw NotPlainWav("a WAV without whole frames");
      header.begin = at;
      header.frames = size / header.frame_bytes();
    } else if (!is_metadata(chunk.data(), size)) {
      throw NotPlainWav("a WAV with an unusual chunk");
    }
    at += size;
    if (size % 2 == 1 && at < end) ++at;  // chunks begin at even offsets
  }
  if (at != end) throw NotPlainWav("a WAV with bytes after its chunks");
  if (header.frames == 0) throw NotPlainWav("a WAV without samples");
  if (header.coding == WavCoding::kS16) check_is_sound(bytes, header);
  return header;
}

}  // namespace headrace
