// WAV files in memory, made chunk by chunk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/audio/wav_header.h"

namespace headrace::test {

using WavContent = std::vector<uint8_t>;

inline void append_word(WavContent& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

inline WavContent wav_chunk(const std::string& name, const WavContent& content) {
  WavContent made(name.begin(), name.end());
  append_word(made, content.size(), 4);
  made.insert(made.end(), content.begin(), content.end());
  if (content.size() % 2 == 1) made.push_back(0);
  return made;
}

/// A format of 16 bytes.
inline WavContent wav_format(int tag, int channels, int rate, int bits) {
  WavContent made;
  append_word(made, static_cast<uint64_t>(tag), 2);
  append_word(made, static_cast<uint64_t>(channels), 2);
  append_word(made, static_cast<uint64_t>(rate), 4);
  append_word(made, static_cast<uint64_t>(rate * channels * bits / 8), 4);
  append_word(made, static_cast<uint64_t>(channels * bits / 8), 2);
  append_word(made, static_cast<uint64_t>(bits), 2);
  return made;
}

inline WavContent riff_of(const std::vector<WavContent>& chunks) {
  WavContent content = {'W', 'A', 'V', 'E'};
  for (const WavContent& one : chunks) content.insert(content.end(), one.begin(), one.end());
  WavContent made = {'R', 'I', 'F', 'F'};
  append_word(made, content.size(), 4);
  made.insert(made.end(), content.begin(), content.end());
  return made;
}

/// Fails the sanitizers where a byte outside the content is read.
class ContentBytes final : public WavBytes {
 public:
  explicit ContentBytes(std::span<const uint8_t> content) : content_(content.begin(), content.end()) {}
  uint64_t size() const override { return content_.size(); }
  void read(std::span<uint8_t> to, uint64_t offset) const override {
    if (offset > content_.size() || to.size() > content_.size() - offset) __builtin_trap();
    if (!to.empty()) std::memcpy(to.data(), content_.data() + offset, to.size());
  }

 private:
  const WavContent content_;
};

}  // namespace headrace::test
