// Lists of entry points by key, in memory that processes share. Lists only grow; nothing is moved or removed.
//
// Note [shared lists]: what is new is written to memory that nothing refers to, and then published by one atomic store.
// So no process waits for another one, nothing half written is found, and what a process was writing when it was killed
// is memory that stays unused. A list is copied before it is compared with its checksum, which depends on secrets that
// the memory does not decide, and no number in the memory is used without a check: damage costs time, never more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/platform/shared_memory.h"

namespace headrace {

/// The state of a decoder between two rows of MCUs.
struct EntryPoint {
  uint32_t bit = 0;  // of the scan as in the file: 8 * byte + bit of that byte
  std::array<int16_t, 3> dc{};
  bool operator==(const EntryPoint&) const = default;
};

/// The key and the entry points of an image.
struct EntryList {
  uint64_t key = 0;
  std::vector<EntryPoint> points;
};

/// How many decodes of scans that may be entered used entry points.
struct EntryCounts {
  size_t images = 0, bytes = 0;     // known now
  size_t decodes = 0, entered = 0;  // so far: all, and those of images that were known
};

/// Any thread of any process that has the memory may call any method.
class SharedLists {
 public:
  /// What keys, and the places of lists in memory, depend on, drawn at random, so that an attacker cannot choose them.
  using Secrets = std::array<uint64_t, 5>;

  /// New ones, of at most `limit` bytes. Throws std::bad_alloc.
  SharedLists(size_t limit, const Secrets& secrets);
  /// Those of another process, with what capacity() is there; see attached().
  SharedLists(int descriptor, size_t capacity, const Secrets& secrets);
  /// Whether the descriptor led to the memory of lists with this capacity and these secrets; else call nothing else.
  bool attached() const;
  int descriptor() const { return memory_.descriptor(); }
  /// Bytes that may be used: the limit, or what fits into the address space.
  size_t capacity() const { return capacity_; }

  /// Replaces *found by the list of a key, which is empty if none is known. Throws std::bad_alloc.
  bool find(uint64_t key, std::vector<EntryPoint>* found) const;
  /// Adds to the list of a key what it lacks of `longer`, whose beginning it is. False: it lacks nothing, or there is
  /// no memory. Throws std::bad_alloc.
  bool keep(uint64_t key, std::span<const EntryPoint> longer);
  /// All lists. Throws std::bad_alloc.
  std::vector<EntryList> all() const;

  /// Whether the memory is nearly used up.
  bool is_full() const;
  void count(bool entered) const;
  EntryCounts counts() const;
  /// The memory, for tests.
  std::span<uint8_t> bytes() const { return {memory_.data(), memory_.size()}; }

 private:
  using Slot = std::atomic<uint64_t>;  // 0: free; else where a part of a list is, and some bits of its key's hash
  struct Head;
  struct Part;
  struct Level {
    Slot* slots = nullptr;  // null: there is none
    uint64_t mask = 0;      // of the buckets' numbers
  };
  struct Found {
    Slot* slot = nullptr;
    uint64_t word = 0;  // that was in it
  };
  struct Hash;
  static constexpr size_t kLevels = 48;

  Head& head() const;
  Level level(size_t number) const;
  bool add_level();
  bool is_place(uint64_t place, uint64_t bytes) const;
  bool read(uint64_t place, EntryList* found) const;
  Found slot_of(uint64_t key, const Hash& hash, EntryList* list) const;
  Slot* free_slot(const Hash& hash) const;
  uint64_t sum_of(const Part& part, const EntryPoint* points) const;
  uint64_t take(uint64_t bytes);
  void give_back(uint64_t place, uint64_t bytes);

  const SharedMemory memory_;
  const uint64_t capacity_;
  const Secrets secrets_;
};

}  // namespace headrace
