// The step of the hashes of files and lists.
#pragma once

#include <cstdint>
#include <cstring>

namespace headrace {

__extension__ using WideWord = unsigned __int128;

/// The halves of a product, folded: every bit of the result depends on every bit of both.
inline uint64_t mixed(uint64_t a, uint64_t b) {
  const WideWord product = WideWord{a} * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// Eight bytes, as this machine orders them.
inline uint64_t word_at(const uint8_t* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace headrace
