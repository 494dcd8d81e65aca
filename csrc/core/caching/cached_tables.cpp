// Asks for the state of a file, takes the bytes of that state from the cache, or reads them and keeps them.
#include "core/caching/cached_tables.h"

#include <sys/stat.h>

#include <stdexcept>
#include <utility>

#include "core/source/read_ahead.h"
#include "core/source/reader.h"

namespace headrace {
namespace {

/// What a file is now; nothing if it is no regular file, or cannot be found: reading it says why.
std::optional<FileStamp> stamp_of(const char* path) noexcept {
  struct stat info{};
  if (::stat(path, &info) != 0) return {};
  return stamp_in(info);
}

}  // namespace

CachedFiles::CachedFiles(std::shared_ptr<LocalCache> cache, std::string paths, std::vector<uint64_t> offsets,
                         uint64_t first)
    : cache_(std::move(cache)), paths_(std::move(paths)), offsets_(std::move(offsets)), first_(first) {}

Blob CachedFiles::at(int64_t row) const {
  Blob blob = ByteRanges::at(row);
  blob.path = path(row);
  return blob;
}

RangeKey CachedFiles::key(int64_t row, const FileStamp& stamp) const {
  return {first_ + static_cast<uint64_t>(row), static_cast<uint64_t>(stamp.modified_ns), stamp.size};
}

std::span<const uint8_t> CachedFiles::read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>&) const {
  const auto before = stamp_of(path(row));
  if (!before) return read_file(path(row), buffer);
  const FilePart part{path(row), *before, 0, before->size};
  if (const auto found = cache_->find(key(row, *before), part, buffer)) return *found;
  const auto bytes = read_file(path(row), buffer);
  // A file that was written meanwhile may be a mixture.
  if (bytes.size() == before->size && stamp_of(path(row)) == before) cache_->keep(key(row, *before), part, bytes);
  return bytes;
}

void CachedFiles::prepare(int64_t row) const noexcept {
  const auto stamp = stamp_of(path(row));
  if (!stamp || cache_->holds(key(row, *stamp))) return;
  Blob blob;
  blob.path = path(row);
  headrace::prepare(blob);
}

CachedRanges::CachedRanges(std::shared_ptr<LocalCache> cache, std::shared_ptr<const FileRanges> ranges,
                           std::vector<uint64_t> files)
    : cache_(std::move(cache)), ranges_(std::move(ranges)), files_(std::move(files)) {
  if (files_.size() < ranges_->files()) throw std::out_of_range("a file has no number in the cache");
}

RangeKey CachedRanges::key(int64_t row) const {
  return {files_[ranges_->file(row)], ranges_->offset(row), ranges_->bytes(row)};
}

std::span<const uint8_t> CachedRanges::read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const {
  const FilePart part{ranges_->path(row), ranges_->stamp(row), ranges_->offset(row), ranges_->bytes(row)};
  if (const auto found = cache_->find(key(row), part, buffer)) {
    ranges_->check(row);
    return *found;
  }
  const auto bytes = ranges_->read(row, buffer, cancelled);
  cache_->keep(key(row), part, bytes);
  return bytes;
}

void CachedRanges::prepare(int64_t row) const noexcept {
  if (!cache_->holds(key(row))) ranges_->prepare(row);
}

}  // namespace headrace
