// Where the rows of MCUs begin in the scans of JPEGs without restart markers: learned by one decode, used by later
// ones.
#include "core/jpeg/scan/entry_points.h"

#include <cstring>
#include <new>
#include <random>

#include "core/jpeg/scan/mixed_words.h"

namespace headrace {

EntryPoints::Secrets EntryPoints::drawn() {
  std::random_device device;
  Secrets made;
  for (uint64_t& one : made) one = uint64_t{device()} << 32 | device() | 1;
  return made;
}

uint64_t EntryPoints::key_of(std::span<const uint8_t> file) const {
  const auto& s = secrets_;
  uint64_t lanes[4] = {s[0], s[1], s[2], s[3]};
  const uint8_t* p = file.data();
  size_t left = file.size();
  for (; left >= 64; left -= 64, p += 64)
    for (size_t i = 0; i < 4; ++i) lanes[i] = mixed(word_at(p + 16 * i) ^ s[i], word_at(p + 16 * i + 8) ^ lanes[i]);
  uint8_t rest[64] = {};
  if (left != 0) std::memcpy(rest, p, left);
  for (size_t i = 0; i < 4; ++i) lanes[i] = mixed(word_at(rest + 16 * i) ^ s[i], word_at(rest + 16 * i + 8) ^ lanes[i]);
  uint64_t key = file.size() ^ s[4];
  for (const uint64_t lane : lanes) key = mixed(key ^ lane, s[4]);
  return key;
}

std::shared_ptr<EntryPoints> EntryPoints::attach(int descriptor, size_t capacity, const Secrets& secrets) {
  std::shared_ptr<EntryPoints> made(new EntryPoints(descriptor, capacity, secrets));
  return made->lists_.attached() ? made : nullptr;
}

void EntryPoints::find(uint64_t key, std::vector<EntryPoint>* found) const { lists_.count(lists_.find(key, found)); }

void EntryPoints::keep(uint64_t key, std::span<const EntryPoint> learned) noexcept {
  try {
    lists_.keep(key, learned);
  } catch (const std::bad_alloc&) {  // then nothing is learned
  }
}

}  // namespace headrace
