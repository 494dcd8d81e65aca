// A map of ranges, two lists in the order of eviction, and a descriptor that wakes the fetching thread.
#include "core/io/remote/byte_store.h"

#include <chrono>
#include <utility>

#include "core/base/error.h"

namespace headrace {
namespace {

constexpr auto kGlance = std::chrono::milliseconds(20);  // between checks of `cancelled`, whose change wakes no thread

}  // namespace

ByteStore::ByteStore(size_t window, size_t keep) : window_(window), keep_(keep) {}

void ByteStore::check_process() const {
  if (fork_.forked()) {
    throw Error(Stage::kRead,
                "this loader's connections were opened before the process forked; make a new iterator, "
                "iter(loader), in the child");
  }
}

bool ByteStore::want(const RangeKey& key) {
  const std::lock_guard guard(lock_);
  const auto [found, is_new] = entries_.try_emplace(key);
  if (is_new) return true;
  if (!found->second.failed || found->second.waiting > 0) return false;
  found->second = Entry();
  return true;
}

bool ByteStore::has(const RangeKey& key) const {
  const std::lock_guard guard(lock_);
  const auto found = entries_.find(key);
  return closed_ || (found != entries_.end() && (found->second.bytes != nullptr || found->second.failed));
}

void ByteStore::put(const RangeKey& key, std::span<const uint8_t> bytes, Origin origin) {
  auto made = copy_of(bytes);
  const std::lock_guard guard(lock_);
  put_in(entries_.try_emplace(key).first, std::move(made), origin);
}

void ByteStore::put(const RangeKey& key, SharedBytes bytes) {
  const std::lock_guard guard(lock_);
  put_in(entries_.try_emplace(key).first, std::move(bytes), Origin::kFetched);
}

void ByteStore::arrived(const RangeKey& key, SharedBytes bytes) {
  const std::lock_guard guard(lock_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    put_in(found, std::move(bytes), Origin::kFetched);
  }
}

void ByteStore::put_in(Entries::iterator found, SharedBytes bytes, Origin origin) {
  if (found->second.bytes != nullptr) return;
  const int waiting = found->second.waiting;
  unread_bytes_ += bytes->size();
  found->second = Entry{.bytes = std::move(bytes), .origin = origin, .waiting = waiting};
  found->second.place = unread_.insert(unread_.end(), found->first);
  make_room();
  changed_.notify_all();
}

void ByteStore::keep(const RangeKey& key, std::span<const uint8_t> bytes) {
  const auto fits = [&] { return bytes.size() <= keep_ && read_bytes_ <= keep_ - bytes.size(); };
  {
    const std::lock_guard guard(lock_);
    if (!fits()) return;  // before the copy, which a full store would make for each read
  }
  auto made = copy_of(bytes);
  const std::lock_guard guard(lock_);
  if (!fits()) return;
  const auto found = entries_.try_emplace(key).first;
  if (found->second.bytes != nullptr) return;
  const int waiting = found->second.waiting;
  found->second = Entry{.bytes = std::move(made), .read = true, .waiting = waiting};
  found->second.place = read_.insert(read_.end(), key);
  read_bytes_ += bytes.size();
  changed_.notify_all();
}

void ByteStore::fail(const RangeKey& key, std::string reason, int os_errno) {
  const std::lock_guard guard(lock_);
  Entry& entry = entries_[key];
  if (entry.bytes != nullptr) return;
  entry.failed = true;
  entry.reason = std::move(reason);
  entry.os_errno = os_errno;
  changed_.notify_all();
}

SharedBytes ByteStore::take_if_here(const RangeKey& key) {
  check_process();
  const std::lock_guard guard(lock_);
  const auto found = entries_.find(key);
  return found == entries_.end() || found->second.bytes == nullptr ? nullptr : taken(found);
}

SharedBytes ByteStore::take(const RangeKey& key, const std::atomic<bool>& cancelled) {
  check_process();
  std::unique_lock guard(lock_);
  for (;;) {
    check_usable();
    const auto [found, is_new] = entries_.try_emplace(key);
    if (is_new) {
      demands_.push_back(key);
      demanded_.signal();
    }
    Entry& entry = found->second;
    if (entry.bytes != nullptr) return taken(found);
    if (entry.failed) raise_failure(found);
    if (cancelled.load()) throw Error(Stage::kRead, "the batch was cancelled");
    ++entry.waiting;  // an entry with waiting readers is not removed
    changed_.wait_for(guard, kGlance, [&] { return entry.bytes != nullptr || entry.failed || closed_; });
    --entry.waiting;
  }
}

SharedBytes ByteStore::take_out(const RangeKey& key) {
  check_process();
  const std::lock_guard guard(lock_);
  check_usable();
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  if (found->second.failed) raise_failure(found);
  SharedBytes bytes = found->second.bytes;
  if (bytes != nullptr && found->second.waiting == 0) drop(found);
  return bytes;
}

void ByteStore::forget(const RangeKey& key) {
  if (fork_.forked()) return;
  const std::lock_guard guard(lock_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.waiting > 0) return;
  if (found->second.bytes != nullptr) {
    drop(found);
  } else {
    entries_.erase(found);
  }
}

void ByteStore::check_usable() const {
  if (closed_) throw Error(Stage::kRead, "the connections of this process are closed");
}

void ByteStore::raise_failure(Entries::iterator found) {
  const Error error(Stage::kRead, found->second.reason, found->second.os_errno);
  if (found->second.waiting == 0) entries_.erase(found);  // another read tries again
  throw error;
}

SharedBytes ByteStore::taken(Entries::iterator found) {
  Entry& entry = found->second;
  SharedBytes bytes = entry.bytes;
  ++counter(std::exchange(entry.origin, Origin::kMemory));
  (entry.read ? read_ : unread_).erase(entry.place);
  (entry.read ? read_bytes_ : unread_bytes_) -= bytes->size();
  entry.read = true;
  entry.place = read_.insert(read_.end(), found->first);
  read_bytes_ += bytes->size();
  make_room();
  return bytes;
}

/// Removes an entry and its bytes. No reader may be waiting for it.
void ByteStore::drop(Entries::iterator found) {
  Entry& entry = found->second;
  (entry.read ? read_ : unread_).erase(entry.place);
  (entry.read ? read_bytes_ : unread_bytes_) -= entry.bytes->size();
  entries_.erase(found);
}

void ByteStore::make_room() {
  const auto free = [&](std::list<RangeKey>::iterator first, std::list<RangeKey>::iterator last, size_t& held,
                        size_t limit, bool from_end) {
    while (held > limit && first != last) {
      const auto next = from_end ? std::prev(last) : first;
      const auto found = entries_.find(*next);
      const bool waited_for = found->second.waiting > 0;
      if (from_end) {
        last = waited_for ? next : last;
      } else {
        ++first;
      }
      if (!waited_for) drop(found);
    }
  };
  free(read_.begin(), read_.end(), read_bytes_, keep_, true);
  free(unread_.begin(), unread_.end(), unread_bytes_, window_, false);
}

std::vector<RangeKey> ByteStore::take_demands() {
  demanded_.clear();
  const std::lock_guard guard(lock_);
  return std::exchange(demands_, {});
}

uint64_t& ByteStore::counter(Origin origin) {
  switch (origin) {
    case Origin::kMemory:
      return counts_.from_memory;
    case Origin::kDisk:
      return counts_.from_disk;
    case Origin::kFetched:
      break;
  }
  return counts_.fetched;
}

void ByteStore::count_origin(Origin origin) {
  const std::lock_guard guard(lock_);
  ++counter(origin);
}

StoreCounts ByteStore::counts() const {
  const std::lock_guard guard(lock_);
  StoreCounts now = counts_;
  now.bytes = unread_bytes_ + read_bytes_;
  return now;
}

void ByteStore::clear() {
  const std::lock_guard guard(lock_);
  for (auto one = entries_.begin(); one != entries_.end();) {
    const auto next = std::next(one);
    if (one->second.bytes != nullptr && one->second.waiting == 0) drop(one);
    one = next;
  }
}

void ByteStore::close() {
  if (fork_.forked()) return;
  const std::lock_guard guard(lock_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace headrace
