// Tables of local files whose bytes a cache keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/io/cache/local_cache.h"
#include "core/io/source/file_ranges.h"

namespace headrace {

/// A table of whole files. Each read looks the path up; a file that changed or was replaced is a miss.
/// Pipes, devices and files that are too large for memory are read, or left to Pillow, as without a cache.
class CachedFiles final : public ByteRanges {
 public:
  /// `paths`, `offsets`: as for BlobTable::of_files.
  CachedFiles(std::shared_ptr<LocalCache> cache, std::string paths, std::vector<uint64_t> offsets);

  int64_t size() const override { return static_cast<int64_t>(offsets_.size()); }
  /// The blob also has the path, for Pillow.
  Blob at(int64_t row) const override;
  std::span<const uint8_t> read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const override;
  void prepare(int64_t row) const noexcept override;

 private:
  const char* path(int64_t row) const { return paths_.data() + offsets_[static_cast<size_t>(row)]; }

  const std::shared_ptr<LocalCache> cache_;
  const std::string paths_;
  const std::vector<uint64_t> offsets_;
};

/// A table of ranges of files. Each read checks that the file is the one that was indexed.
class CachedRanges final : public ByteRanges {
 public:
  CachedRanges(std::shared_ptr<LocalCache> cache, std::shared_ptr<const FileRanges> ranges);

  int64_t size() const override { return ranges_->size(); }
  std::span<const uint8_t> read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const override;
  void prepare(int64_t row) const noexcept override;

 private:
  FilePart part(int64_t row) const;

  const std::shared_ptr<LocalCache> cache_;
  const std::shared_ptr<const FileRanges> ranges_;
};

}  // namespace headrace
