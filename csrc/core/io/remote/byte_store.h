// Bytes that arrive from other machines: put by the thread that fetches them, taken by the workers that need them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/byte_buffer.h"
#include "core/base/fork_guard.h"
#include "core/base/platform/wake_event.h"
#include "core/io/source/byte_ranges.h"

namespace headrace {

/// A range of an object. The objects of a process are numbered; an object that changed is another one. `mark`: a hash
/// of what is known about the range and compared with its bytes before they are stored. `device`: for local files,
/// whose `object` is their number on that device.
struct RangeKey {
  uint64_t object = 0, offset = 0, length = 0, mark = 0, device = 0;
  bool operator==(const RangeKey&) const = default;
};

/// How reads were served so far.
struct StoreCounts {
  uint64_t from_memory = 0, from_disk = 0, fetched = 0;  // ranges that were read
  uint64_t bytes = 0;                                    // that are held now
};

/// Any thread. A range is wanted by at most one fetch at a time. If a range that was fetched ahead is dropped before it
/// is read, it is demanded again.
class ByteStore {
 public:
  /// `window`: bytes that are held until they are read. `keep`: bytes that stay after they were read; of these the most
  /// recently read one is evicted first, because a shuffled epoch needs it again last.
  ByteStore(size_t window, size_t keep);
  ByteStore(const ByteStore&) = delete;
  ByteStore& operator=(const ByteStore&) = delete;

  /// Whether the caller has to fetch the range: it is neither held nor wanted. Marks it as wanted.
  bool want(const RangeKey& key);
  /// Whether a read of the range would not wait.
  bool has(const RangeKey& key) const;
  /// Where bytes come from when they are read for the first time.
  enum class Origin : uint8_t { kMemory, kDisk, kFetched };
  /// Ends a fetch, or keeps what was read from disk.
  void put(const RangeKey& key, std::span<const uint8_t> bytes, Origin origin = Origin::kFetched);
  /// The same without a copy.
  void put(const RangeKey& key, SharedBytes bytes);
  /// Ends a fetch without a copy. Bytes that are not wanted any more, because another fetch was faster, are dropped.
  void arrived(const RangeKey& key, SharedBytes bytes);
  /// Keeps bytes as if they had been put and read, if there is room for all of them; not counted as a read.
  void keep(const RangeKey& key, std::span<const uint8_t> bytes);
  void fail(const RangeKey& key, std::string reason, int os_errno);

  /// The bytes if they are held, otherwise null. Never waits.
  SharedBytes take_if_here(const RangeKey& key);
  /// The bytes. Demands them if they are not being fetched, and waits. Throws Error(kRead) if their fetch fails, if
  /// `cancelled` is set, after close(), and in a forked child.
  SharedBytes take(const RangeKey& key, const std::atomic<bool>& cancelled);

  /// Removes a range that was wanted: its bytes, which are not counted as a read; null while they are being fetched,
  /// and if the store had no room for them: want() tells which. Throws as take() does.
  SharedBytes take_out(const RangeKey& key);
  /// Removes a range that was wanted; its bytes are dropped when they arrive.
  void forget(const RangeKey& key);

  /// The ranges that readers wait for and that are not being fetched; each is returned once, and counts as wanted from
  /// then.
  std::vector<RangeKey> take_demands();
  /// Readable when there are demands.
  int demand_descriptor() const { return demanded_.descriptor(); }

  /// Counts a read whose bytes the caller has found elsewhere.
  void count_origin(Origin origin);
  StoreCounts counts() const;
  bool keeps() const { return keep_ > 0; }
  /// Drops what is held.
  void clear();
  /// Ends all waiting. Idempotent.
  void close();

 private:
  struct Hash {
    size_t operator()(const RangeKey& key) const {
      return (key.object * 0x9E3779B97F4A7C15u) ^ (key.offset * 0xD6E8FEB86659FD93u) ^ key.length ^
             (key.mark * 0xC2B2AE3D27D4EB4Fu) ^ (key.device * 0x165667B19E3779F9u);
    }
  };
  struct Entry {
    SharedBytes bytes;  // null: wanted, or failed
    Origin origin = Origin::kMemory;
    bool failed = false, read = false;
    std::string reason;
    int os_errno = 0;
    int waiting = 0;
    std::list<RangeKey>::iterator place;  // in unread_ or read_, where it has bytes
  };
  using Entries = std::unordered_map<RangeKey, Entry, Hash>;

  void put_in(Entries::iterator found, SharedBytes bytes, Origin origin);
  SharedBytes taken(Entries::iterator found);
  uint64_t& counter(Origin origin);
  void drop(Entries::iterator found);
  void make_room();
  [[noreturn]] void raise_failure(Entries::iterator found);
  void check_usable() const;
  void check_process() const;

  const size_t window_, keep_;
  const WakeEvent demanded_;
  const ForkGuard fork_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  Entries entries_;
  std::list<RangeKey> unread_, read_;  // oldest first
  size_t unread_bytes_ = 0, read_bytes_ = 0;
  std::vector<RangeKey> demands_;
  StoreCounts counts_;
  bool closed_ = false;
};

}  // namespace headrace
