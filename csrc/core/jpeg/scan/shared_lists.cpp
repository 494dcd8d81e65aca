// Lists of entry points by key, in memory that processes share. Lists only grow; nothing is moved or removed.
#include "core/jpeg/scan/shared_lists.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <type_traits>

#include "core/jpeg/scan/mixed_words.h"

namespace headrace {
namespace {

constexpr uint64_t kHeadBytes = 4096;
constexpr uint64_t kAlignment = 8;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;    // that a table uses, whatever its limit is
constexpr uint64_t kLeastMapped = uint64_t{1} << 16;  // where a process may have little address space
constexpr uint64_t kChunk = uint64_t{1} << 18;        // that becomes present at once
constexpr uint64_t kMark = 0x6865616472616365;        // "headrace"
constexpr size_t kBucket = 8;                         // slots
constexpr size_t kBucketBytes = kBucket * sizeof(uint64_t);
constexpr int kPlaceBits = 40;           // of a slot: the place in units of kAlignment
constexpr int kSizeBits = 6;             // of a level: the logarithm of its buckets
constexpr uint32_t kMostRows = 1 << 13;  // an image has at most 65,535 rows of pixels, 8 or more each
constexpr int kAttempts = 8;

constexpr uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }

size_t mapped_for(uint64_t capacity) {
  return static_cast<size_t>((kHeadBytes + capacity + kHeadBytes - 1) & ~(kHeadBytes - 1));
}

/// Memory for a table: less than the limit where the address space of the process is limited.
SharedMemory map_for(size_t limit) {
  for (uint64_t capacity = std::min<uint64_t>(limit, kMostBytes);; capacity /= 2) {
    try {
      return SharedMemory(mapped_for(capacity));
    } catch (const std::bad_alloc&) {
      if (capacity <= kLeastMapped) throw;
    }
  }
}

}  // namespace

struct SharedLists::Head {
  uint64_t mark, capacity;
  Secrets secrets;
  std::atomic<uint64_t> used;     // bytes after the head
  std::atomic<uint64_t> present;  // bytes from the beginning of the memory; whole pages
  std::atomic<uint64_t> images, decodes, entered;
  std::atomic<uint64_t> full;  // not 0: there is no memory, though less than the limit is used
  std::atomic<uint64_t> levels[kLevels];
};

/// A list is a chain of these; points follow each. The last rows come first.
struct SharedLists::Part {
  uint64_t sum, key;
  uint64_t before;  // the place of the part with the rows before; 0: none
  uint32_t first, count;
};

/// Where a list may be: in one of two buckets of each level, whichever had fewer lists when it came.
struct SharedLists::Hash {
  Hash(uint64_t key, const Secrets& secrets)
      : one(mixed(key ^ secrets[0], secrets[1])), other(mixed(one ^ secrets[2], secrets[3])) {}
  uint64_t tag() const { return other >> kPlaceBits; }
  uint64_t one, other;
};

SharedLists::SharedLists(size_t limit, const Secrets& secrets)
    : memory_(map_for(limit)), capacity_(std::min<uint64_t>(limit, memory_.size() - kHeadBytes)), secrets_(secrets) {
  static_assert(sizeof(Head) <= kHeadBytes && std::is_standard_layout_v<Head>);
  static_assert(sizeof(Part) % kAlignment == 0 && std::is_trivially_copyable_v<Part>);
  static_assert(sizeof(EntryPoint) == 12 && std::is_trivially_copyable_v<EntryPoint>);
  static_assert(std::atomic<uint64_t>::is_always_lock_free);  // as locks they would be of one process
  Head* const made = new (memory_.data()) Head{};
  made->mark = kMark;
  made->capacity = capacity_;
  made->secrets = secrets;
  made->present = kHeadBytes;
}

SharedLists::SharedLists(int descriptor, size_t capacity, const Secrets& secrets)
    : memory_(descriptor, mapped_for(std::min<uint64_t>(capacity, kMostBytes))),
      capacity_(capacity),
      secrets_(secrets) {}

bool SharedLists::attached() const {
  return memory_.data() != nullptr && head().mark == kMark && head().capacity == capacity_ &&
         head().secrets == secrets_;
}

SharedLists::Head& SharedLists::head() const { return *std::launder(reinterpret_cast<Head*>(memory_.data())); }

bool SharedLists::is_place(uint64_t place, uint64_t bytes) const {
  const uint64_t end = kHeadBytes + capacity_;
  return place % kAlignment == 0 && place >= kHeadBytes && place <= end && bytes <= end - place;
}

SharedLists::Level SharedLists::level(size_t number) const {
  if (number >= kLevels) return {};
  const uint64_t word = head().levels[number].load(std::memory_order_acquire);
  const uint64_t place = (word >> kSizeBits) * kAlignment, size = word & ((1 << kSizeBits) - 1);
  if (word == 0 || size >= kPlaceBits || !is_place(place, kBucketBytes << size)) return {};
  return {reinterpret_cast<Slot*>(memory_.data() + place), (uint64_t{1} << size) - 1};
}

/// A place for `bytes` bytes; 0: there is none.
uint64_t SharedLists::take(uint64_t bytes) {
  bytes = aligned(bytes);
  uint64_t begin = head().used.load(std::memory_order_relaxed);
  do {
    if (!is_place(kHeadBytes + begin, bytes)) return 0;
  } while (!head().used.compare_exchange_weak(begin, begin + bytes, std::memory_order_acquire));
  const uint64_t end = kHeadBytes + begin + bytes;
  for (uint64_t there = head().present.load(); there < end;) {
    const uint64_t until = std::min<uint64_t>((end + kChunk - 1) / kChunk * kChunk, memory_.size());
    if (!memory_.make_present(there, until)) {
      head().full = 1;
      return 0;
    }
    if (head().present.compare_exchange_strong(there, until)) break;
  }
  return kHeadBytes + begin;
}

/// Undoes take(), unless more was taken since.
void SharedLists::give_back(uint64_t place, uint64_t bytes) {
  uint64_t end = place - kHeadBytes + aligned(bytes);
  head().used.compare_exchange_strong(end, place - kHeadBytes, std::memory_order_release);
}

/// False: there is no memory for one.
bool SharedLists::add_level() {
  size_t number = 0;
  uint64_t buckets = 1;
  for (Level last; (last = level(number)).slots != nullptr; ++number) buckets = 4 * (last.mask + 1);
  if (number == kLevels) return false;
  const uint64_t left = capacity_ - std::min(capacity_, head().used.load(std::memory_order_relaxed));
  buckets = std::min(buckets, std::bit_floor(left / 4 / kBucketBytes));
  const uint64_t place = buckets == 0 ? 0 : take(buckets * kBucketBytes);
  if (place == 0) return false;
  std::memset(memory_.data() + place, 0, buckets * kBucketBytes);
  uint64_t none = 0;
  const uint64_t word = (place / kAlignment) << kSizeBits | static_cast<uint64_t>(std::countr_zero(buckets));
  if (!head().levels[number].compare_exchange_strong(none, word, std::memory_order_release)) {
    give_back(place, buckets * kBucketBytes);  // another thread or process has added one
  }
  return level(number).slots != nullptr;
}

uint64_t SharedLists::sum_of(const Part& part, const EntryPoint* points) const {
  uint64_t sum = mixed(part.key ^ secrets_[1], secrets_[4]);
  sum = mixed(sum ^ part.before, secrets_[2]);
  sum = mixed(sum ^ (uint64_t{part.first} << 32 | part.count), secrets_[3]);
  for (uint32_t i = 0; i < part.count; ++i) {
    uint64_t words[2] = {};
    std::memcpy(words, &points[i], sizeof points[i]);
    sum = mixed(sum ^ words[0], words[1] ^ secrets_[0]);
  }
  return sum;
}

/// Reads the list whose newest part is at a place. False: there is none, or it is damaged.
bool SharedLists::read(uint64_t place, EntryList* found) const {
  uint64_t rows = 0;  // before the part read last
  do {
    Part part;
    if (!is_place(place, sizeof part)) return false;
    std::memcpy(&part, memory_.data() + place, sizeof part);
    const uint64_t end = uint64_t{part.first} + part.count, bytes = part.count * sizeof(EntryPoint);
    if (part.count == 0 || end > kMostRows || !is_place(place + sizeof part, bytes)) return false;
    if (rows == 0) {
      found->key = part.key;
      found->points.resize(end);
    } else if (part.key != found->key || end != rows) {
      return false;
    }
    EntryPoint* const points = &found->points[part.first];
    std::memcpy(points, memory_.data() + place + sizeof part, bytes);
    if (part.sum != sum_of(part, points)) return false;
    rows = part.first;
    place = part.before;
  } while (rows != 0);
  return true;
}

/// The slot that refers to the list of a key, which is read; null: none does.
SharedLists::Found SharedLists::slot_of(uint64_t key, const Hash& hash, EntryList* list) const {
  for (size_t number = 0;; ++number) {
    const Level in = level(number);
    if (in.slots == nullptr) return {};
    for (const uint64_t bucket : {hash.one & in.mask, hash.other & in.mask}) {
      for (Slot* slot = in.slots + bucket * kBucket; slot < in.slots + (bucket + 1) * kBucket; ++slot) {
        const uint64_t word = slot->load(std::memory_order_acquire);
        if (word == 0) break;
        if (word >> kPlaceBits != hash.tag()) continue;
        const uint64_t place = (word & ((uint64_t{1} << kPlaceBits) - 1)) * kAlignment;
        if (read(place, list) && list->key == key) return {slot, word};
      }
    }
  }
}

/// The free slot for a list that is new; null: another level is needed. While it is free, all find the same: so two
/// that add one list at the same time do so in one slot, if each looks for the list after this.
SharedLists::Slot* SharedLists::free_slot(const Hash& hash) const {
  const auto first_free = [](Slot* bucket) {
    return static_cast<size_t>(std::find_if(bucket, bucket + kBucket, [](const Slot& slot) { return slot == 0; }) -
                               bucket);
  };
  for (size_t number = 0;; ++number) {
    const Level in = level(number);
    if (in.slots == nullptr) return nullptr;
    Slot* const one = in.slots + (hash.one & in.mask) * kBucket;
    Slot* const other = in.slots + (hash.other & in.mask) * kBucket;
    const size_t in_one = first_free(one), in_other = first_free(other);
    if (std::min(in_one, in_other) < kBucket) return in_one <= in_other ? one + in_one : other + in_other;
  }
}

bool SharedLists::find(uint64_t key, std::vector<EntryPoint>* found) const {
  EntryList list;
  list.points.swap(*found);  // its memory
  const bool known = slot_of(key, Hash(key, secrets_), &list).slot != nullptr;
  found->swap(list.points);
  if (!known) found->clear();
  return known;
}

bool SharedLists::keep(uint64_t key, std::span<const EntryPoint> longer) {
  if (longer.empty() || longer.size() > kMostRows) return false;
  const Hash hash(key, secrets_);
  EntryList known;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Slot* const free = free_slot(hash);
    const Found old = slot_of(key, hash, &known);
    const size_t first = old.slot == nullptr ? 0 : known.points.size();
    if (first >= longer.size()) return false;
    Slot* const slot = old.slot == nullptr ? free : old.slot;
    if (slot == nullptr) {
      if (add_level()) continue;
      head().full = 1;
      return false;
    }
    const std::span<const EntryPoint> more = longer.subspan(first);
    const uint64_t bytes = sizeof(Part) + more.size_bytes(), place = take(bytes);
    if (place == 0) return false;
    constexpr uint64_t kPlaces = (uint64_t{1} << kPlaceBits) - 1;
    Part part{0, key, (old.word & kPlaces) * kAlignment, static_cast<uint32_t>(first),
              static_cast<uint32_t>(more.size())};
    part.sum = sum_of(part, more.data());
    std::memcpy(memory_.data() + place, &part, sizeof part);
    std::memcpy(memory_.data() + place + sizeof part, more.data(), more.size_bytes());
    uint64_t expected = old.word;
    const uint64_t word = hash.tag() << kPlaceBits | place / kAlignment;
    if (slot->compare_exchange_strong(expected, word, std::memory_order_release, std::memory_order_relaxed)) {
      if (old.slot == nullptr) head().images.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    give_back(place, bytes);
  }
  return false;
}

std::vector<EntryList> SharedLists::all() const {
  std::vector<EntryList> found;
  for (size_t number = 0;; ++number) {
    const Level in = level(number);
    if (in.slots == nullptr) return found;
    for (uint64_t i = 0; i < (in.mask + 1) * kBucket; ++i) {
      const uint64_t word = in.slots[i].load(std::memory_order_acquire);
      EntryList list;
      if (word != 0 && read((word & ((uint64_t{1} << kPlaceBits) - 1)) * kAlignment, &list))
        found.push_back(std::move(list));
    }
  }
}

bool SharedLists::is_full() const {
  return head().used.load(std::memory_order_relaxed) >= capacity_ - capacity_ / 16 ||
         head().full.load(std::memory_order_relaxed) != 0;
}

void SharedLists::count(bool entered) const {
  head().decodes.fetch_add(1, std::memory_order_relaxed);
  if (entered) head().entered.fetch_add(1, std::memory_order_relaxed);
}

EntryCounts SharedLists::counts() const {
  const Head& now = head();
  return {now.images, now.used, now.decodes, now.entered};
}

}  // namespace headrace
