// Where the rows of MCUs begin in the scans of JPEGs without restart markers: learned by one decode, used by later
// ones.
#include "core/jpeg/scan/entry_points.h"

#include <chrono>
#include <cstring>
#include <new>
#include <random>
#include <thread>

namespace headrace {
namespace {

// Memory per image, apart from its points: the node of the table, its share of the buckets, allocator overhead.
constexpr size_t kBytesBeside = 96;

__extension__ using Wide = unsigned __int128;

/// The halves of a product, folded: every bit of the result depends on every bit of both.
uint64_t mixed(uint64_t a, uint64_t b) {
  const Wide product = Wide{a} * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t word(const uint8_t* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

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
    for (size_t i = 0; i < 4; ++i) lanes[i] = mixed(word(p + 16 * i) ^ s[i], word(p + 16 * i + 8) ^ lanes[i]);
  uint8_t rest[64] = {};
  if (left != 0) std::memcpy(rest, p, left);
  for (size_t i = 0; i < 4; ++i) lanes[i] = mixed(word(rest + 16 * i) ^ s[i], word(rest + 16 * i + 8) ^ lanes[i]);
  uint64_t key = file.size() ^ s[4];
  for (const uint64_t lane : lanes) key = mixed(key ^ lane, s[4]);
  return key;
}

// A lock that another thread holds counts as "nothing is known": the decode is right without entry points. So no thread
// waits, and a child that was forked while a thread held the lock is not stopped by it.
void EntryPoints::find(uint64_t key, std::vector<EntryPoint>* found) {
  found->clear();
  decodes_.fetch_add(1, std::memory_order_relaxed);
  Part& part = parts_[key % kParts];
  const std::unique_lock lock(part.lock, std::try_to_lock);
  if (!lock) return;
  const auto known = part.known.find(key);
  if (known == part.known.end()) return;
  *found = known->second;
  entered_.fetch_add(1, std::memory_order_relaxed);
}

void EntryPoints::keep(uint64_t key, std::span<const EntryPoint> learned) noexcept {
  Part& part = parts_[key % kParts];
  const std::unique_lock lock(part.lock, std::try_to_lock);
  if (!lock || learned.empty()) return;
  const auto known = part.known.find(key);
  const bool fresh = known == part.known.end();
  const size_t before = fresh ? 0 : known->second.size();
  if (learned.size() <= before) return;
  const size_t more = (learned.size() - before) * sizeof(EntryPoint) + (fresh ? kBytesBeside : 0);
  if (bytes_.fetch_add(more) + more <= limit_) {
    try {
      std::vector<EntryPoint> copy(learned.begin(), learned.end());
      part.known[key].swap(copy);
      images_ += fresh ? 1 : 0;
      return;
    } catch (const std::bad_alloc&) {  // then nothing is learned
    }
  }
  bytes_ -= more;
}

std::vector<EntryList> EntryPoints::all() const {
  constexpr auto kPatience = std::chrono::seconds(1);  // far longer than a look-up; in a forked child no lock may open
  std::vector<EntryList> found;
  found.reserve(images_);
  for (const Part& part : parts_) {
    std::unique_lock lock(part.lock, std::try_to_lock);
    for (const auto end = std::chrono::steady_clock::now() + kPatience; !lock && std::chrono::steady_clock::now() < end;
         (void)lock.try_lock())
      std::this_thread::yield();
    if (!lock) continue;
    for (const auto& [key, points] : part.known) found.push_back({key, points});
  }
  return found;
}

}  // namespace headrace
