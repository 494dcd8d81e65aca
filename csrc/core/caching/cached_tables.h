// Tables of local files whose bytes a cache keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/caching/local_cache.h"
#include "core/source/file_ranges.h"

namespace headrace {

/// A table of whole files. Each read asks for the file's size and time of modification, and reads a file that changed
/// anew. Pipes, devices and files that are too large for memory are read, or left to Pillow, as without a cache.
class CachedFiles final : public ByteRanges {
 public:
  /// `paths`, `offsets`: as for BlobTable::of_files. `first`: number of the first file in the cache; the others follow.
  CachedFiles(std::shared_ptr<LocalCache> cache, std::string paths, std::vector<uint64_t> offsets, uint64_t first);

  int64_t size() const override { return static_cast<int64_t>(offsets_.size()); }
  /// Has the path as well, for Pillow.
  Blob at(int64_t row) const override;
  std::span<const uint8_t> read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const override;
  void prepare(int64_t row) const noexcept override;

 private:
  const char* path(int64_t row) const { return paths_.data() + offsets_[static_cast<size_t>(row)]; }
  RangeKey key(int64_t row, const FileStamp& stamp) const;

  const std::shared_ptr<LocalCache> cache_;
  const std::string paths_;
  const std::vector<uint64_t> offsets_;
  const uint64_t first_;
};

/// A table of ranges of files. Each read checks that the file is the one that was indexed.
class CachedRanges final : public ByteRanges {
 public:
  /// `files`: number of each file of the table in the cache. Throws std::out_of_range if there are fewer.
  CachedRanges(std::shared_ptr<LocalCache> cache, std::shared_ptr<const FileRanges> ranges,
               std::vector<uint64_t> files);

  int64_t size() const override { return ranges_->size(); }
  std::span<const uint8_t> read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const override;
  void prepare(int64_t row) const noexcept override;

 private:
  RangeKey key(int64_t row) const;

  const std::shared_ptr<LocalCache> cache_;
  const std::shared_ptr<const FileRanges> ranges_;
  const std::vector<uint64_t> files_;
};

}  // namespace headrace
