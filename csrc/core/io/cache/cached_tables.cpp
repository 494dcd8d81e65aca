// Gets the state of a file, takes the bytes of that state from the cache, or reads them and keeps them.
#include "core/io/cache/cached_tables.h"

#include <sys/stat.h>

#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/io/source/read_ahead.h"
#include "core/io/source/reader.h"

namespace headrace {
namespace {

/// All of a file in its current state; nullopt if it is not a regular file or cannot be found: reading it reports why.
std::optional<FilePart> part_of(const char* path) noexcept {
  struct stat info{};
  const auto state = ::stat(path, &info) == 0 ? state_in(info) : std::nullopt;
  if (!state) return {};
  return FilePart{path, *state, 0, state->stamp.size, 0};
}

}  // namespace

CachedFiles::CachedFiles(std::shared_ptr<LocalCache> cache, std::string paths, std::vector<uint64_t> offsets)
    : cache_(std::move(cache)), paths_(std::move(paths)), offsets_(std::move(offsets)) {}

Blob CachedFiles::at(int64_t row) const {
  Blob blob = ByteRanges::at(row);
  blob.path = path(row);
  return blob;
}

std::span<const uint8_t> CachedFiles::read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>&) const {
  const auto now = part_of(path(row));
  if (!now) return read_file(path(row), buffer);
  if (const auto found = cache_->find(*now, buffer)) return *found;
  std::optional<FileState> state;
  const auto bytes = read_file(path(row), buffer, &state);
  if (state) cache_->keep({path(row), *state, 0, bytes.size(), 0}, bytes);
  return bytes;
}

void CachedFiles::prepare(int64_t row) const noexcept {
  const auto part = part_of(path(row));
  if (!part || cache_->holds(*part)) return;
  Blob blob;
  blob.path = path(row);
  headrace::prepare(blob);
}

CachedRanges::CachedRanges(std::shared_ptr<LocalCache> cache, std::shared_ptr<const FileRanges> ranges)
    : cache_(std::move(cache)), ranges_(std::move(ranges)) {}

FilePart CachedRanges::part(int64_t row) const {
  return {ranges_->path(row), ranges_->state(row), ranges_->offset(row), ranges_->bytes(row), ranges_->row_hash(row)};
}

std::span<const uint8_t> CachedRanges::read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const {
  const FilePart now = part(row);
  if (const auto found = cache_->find(now, buffer)) return *found;
  const auto bytes = ranges_->read(row, buffer, cancelled);
  if (ranges_->state(row) == now.state) cache_->keep(now, bytes);
  return bytes;
}

void CachedRanges::prepare(int64_t row) const noexcept {
  try {
    if (cache_->holds(part(row))) return;
  } catch (const Error&) {  // reading it reports why
  }
  ranges_->prepare(row);
}

}  // namespace headrace
