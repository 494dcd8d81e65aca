// Looks for a range in memory, then on disk, then waits for it.
#include "core/io/remote/remote_ranges.h"

#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "core/io/remote/cache_file.h"

namespace headrace {

RemoteRanges::RemoteRanges(std::shared_ptr<ByteStore> store, std::vector<uint64_t> objects,
                           std::vector<std::string> cached, std::span<const uint32_t> object_of,
                           std::span<const uint64_t> offsets, std::span<const uint64_t> lengths,
                           std::span<const uint64_t> marks)
    : store_(std::move(store)),
      objects_(std::move(objects)),
      cached_(std::move(cached)),
      object_of_(object_of),
      offsets_(offsets),
      lengths_(lengths),
      marks_(marks) {
  if (cached_.size() != objects_.size() || offsets.size() != object_of.size() || lengths.size() != object_of.size() ||
      (!marks.empty() && marks.size() != object_of.size())) {
    throw std::out_of_range("the arrays of the ranges differ in length");
  }
  for (const uint32_t number : object_of) {
    if (number >= objects_.size()) throw std::out_of_range("a range is in no object");
  }
}

RangeKey RemoteRanges::key(int64_t row) const {
  const auto at = static_cast<size_t>(row);
  return {objects_[object_of_[at]], offsets_[at], lengths_[at], marks_.empty() ? 0 : marks_[at]};
}

/// Path of a row's entry on disk; empty: it has none.
std::string RemoteRanges::path(int64_t row) const {
  const auto at = static_cast<size_t>(row);
  const std::string& beginning = cached_[object_of_[at]];
  if (beginning.empty() || lengths_[at] == kAnyLength) return {};
  const std::string mark = marks_.empty() || marks_[at] == 0 ? "" : "-" + std::to_string(marks_[at]);
  return beginning + "." + std::to_string(offsets_[at]) + "-" + std::to_string(lengths_[at]) + mark;
}

std::span<const uint8_t> RemoteRanges::read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const {
  const RangeKey wanted = key(row);
  SharedBytes bytes = store_->take_if_here(wanted);
  if (bytes == nullptr) {
    if (const std::string entry = path(row); !entry.empty()) {
      if (const auto found = read_cache_file(entry, wanted.length, buffer)) {
        store_->count_origin(ByteStore::Origin::kDisk);
        store_->keep(wanted, *found);
        return *found;
      }
    }
    bytes = store_->take(wanted, cancelled);
  }
  buffer.hold(bytes);
  return *bytes;
}

std::vector<int64_t> RemoteRanges::want(std::span<const int64_t> rows) const {
  std::vector<int64_t> wanted;
  for (const int64_t row : rows) {
    if (row < 0 || row >= size()) throw std::out_of_range("a row is not in the table");
    if (const std::string entry = path(row); !entry.empty() && ::access(entry.c_str(), R_OK) == 0) continue;
    if (store_->want(key(row))) wanted.push_back(row);
  }
  return wanted;
}

bool RemoteRanges::has(int64_t row) const {
  if (store_->has(key(row))) return true;
  const std::string entry = path(row);
  return !entry.empty() && ::access(entry.c_str(), R_OK) == 0;
}

}  // namespace headrace
