// Samples that are parts of larger files: shards, archives, chunks.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/source/byte_ranges.h"
#include "core/source/descriptor_cache.h"

namespace headrace {

/// What a file was when the ranges in it were found.
struct FileStamp {
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970
  bool operator==(const FileStamp&) const = default;
};

/// What a file is by the system's answer; nothing for a device, a pipe or a folder.
std::optional<FileStamp> stamp_in(const struct stat& info) noexcept;

/// What a file is now; nothing for a device, a pipe or a folder. Throws Error(kRead).
std::optional<FileStamp> stamp_of(const OpenFile& file);

/// Returns the number of bytes read: fewer than `length` only at the end of the file. Throws Error(kRead).
uint64_t read_at(const OpenFile& file, uint8_t* to, uint64_t length, uint64_t offset);

/// A table whose row i is `lengths[i]` bytes from `offsets[i]` on of file number `file_of[i]`.
class FileRanges final : public ByteRanges {
 public:
  /// `paths`: as for BlobTable::of_files. The spans have one length, and their memory must outlive the table. Throws
  /// std::out_of_range for a range outside its file, and for a file that is not there.
  FileRanges(std::string paths, std::vector<uint64_t> path_offsets, std::vector<FileStamp> stamps,
             std::span<const uint32_t> file_of, std::span<const uint64_t> offsets, std::span<const uint64_t> lengths,
             DescriptorCache& cache = DescriptorCache::of_process());
  ~FileRanges() override;

  int64_t size() const override { return static_cast<int64_t>(file_of_.size()); }
  /// Also throws Error(kRead) with EFBIG for more than kMostBytes.
  std::span<const uint8_t> read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const override;

  void prepare(int64_t row) const noexcept override;

  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  uint64_t bytes(int64_t row) const { return lengths_[static_cast<size_t>(row)]; }
  uint64_t offset(int64_t row) const { return offsets_[static_cast<size_t>(row)]; }
  uint32_t file(int64_t row) const { return file_of_[static_cast<size_t>(row)]; }
  size_t files() const { return stamps_.size(); }
  const char* path(int64_t row) const { return paths_.data() + path_offsets_[file(row)]; }
  const FileStamp& stamp(int64_t row) const { return stamps_[file(row)]; }
  /// Reads a row's bytes to `to`. Throws Error(kRead) if the file cannot be read, or if its size or its time of
  /// modification differ from its stamp after the read: its bytes may be others. Any thread.
  void read(int64_t row, uint8_t* to) const;
  /// Throws Error(kRead) if the row's file cannot be opened, or differs from its stamp. Any thread.
  void check(int64_t row) const;

 private:
  void check(int64_t row, const OpenFile& file) const;

  const std::string paths_;
  const std::vector<uint64_t> path_offsets_;
  const std::vector<FileStamp> stamps_;
  const std::span<const uint32_t> file_of_;
  const std::span<const uint64_t> offsets_, lengths_;
  DescriptorCache& cache_;
};

}  // namespace headrace
