// Samples that are parts of larger files: shards, archives, chunks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/source/byte_ranges.h"
#include "core/io/source/descriptor_cache.h"
#include "core/io/source/file_state.h"

namespace headrace {

/// A file's current state; nullopt for a device, a pipe or a folder. Throws Error(kRead).
std::optional<FileState> state_of(const OpenFile& file);

/// Returns the number of bytes read: fewer than `length` only at the end of the file. Throws Error(kRead).
uint64_t read_at(const OpenFile& file, uint8_t* to, uint64_t length, uint64_t offset);

/// Compares a table's offsets and sizes with the files that hold the rows. Any thread.
class RowCheck {
 public:
  virtual ~RowCheck() = default;
  /// A part of a file.
  struct Part {
    uint64_t begin = 0, end = 0;
  };
  /// What check() reads: a part of the row's file that contains the row's bytes. nullopt: the row has been checked.
  virtual std::optional<Part> wanted(int64_t row) const = 0;
  /// `bytes`: those of the file starting at `begin`, up to the wanted end or that of the file. Throws Error(kRead) if
  /// the row is not the one that the table describes.
  virtual void check(int64_t row, const OpenFile& file, std::span<const uint8_t> bytes, uint64_t begin) const = 0;
  /// A hash of what the table says about the row, apart from the position of its bytes. Never 0.
  virtual uint64_t row_hash(int64_t row) const = 0;
};

/// A table whose row i is `lengths[i]` bytes, starting at `offsets[i]`, of file number `file_of[i]`.
class FileRanges final : public ByteRanges {
 public:
  /// `paths`: as for BlobTable::of_files. The spans have the same length, and their memory must outlive the table.
  /// Throws std::out_of_range for a range outside its file, and for a file that is not there. `check`: called once for
  /// each row, when it is read; null: no check.
  FileRanges(std::string paths, std::vector<uint64_t> path_offsets, std::vector<FileStamp> stamps,
             std::span<const uint32_t> file_of, std::span<const uint64_t> offsets, std::span<const uint64_t> lengths,
             DescriptorCache& cache = DescriptorCache::of_process(), std::shared_ptr<const RowCheck> check = nullptr);
  ~FileRanges() override;

  int64_t size() const override { return static_cast<int64_t>(file_of_.size()); }
  /// Also throws Error(kRead) with EFBIG for more than kMostBytes, and if the file's size or time of modification
  /// differ from its stamp after the read, because its bytes may have changed; and what RowCheck throws.
  std::span<const uint8_t> read(int64_t row, ReadBuffer& buffer, const std::atomic<bool>& cancelled) const override;

  void prepare(int64_t row) const noexcept override;

  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  uint64_t bytes(int64_t row) const { return lengths_[static_cast<size_t>(row)]; }
  uint64_t offset(int64_t row) const { return offsets_[static_cast<size_t>(row)]; }
  uint32_t file(int64_t row) const { return file_of_[static_cast<size_t>(row)]; }
  size_t files() const { return stamps_.size(); }
  const char* path(int64_t row) const { return paths_.data() + path_offsets_[file(row)]; }
  /// RowCheck's hash of the row; 0 without a check.
  uint64_t row_hash(int64_t row) const { return check_ == nullptr ? 0 : check_->row_hash(row); }
  /// The current state of the row's file. Throws Error(kRead) if it cannot be opened, or differs from its stamp. Any
  /// thread.
  FileState state(int64_t row) const;

 private:
  FileState state(int64_t row, const OpenFile& file) const;

  const std::string paths_;
  const std::vector<uint64_t> path_offsets_;
  const std::vector<FileStamp> stamps_;
  const std::span<const uint32_t> file_of_;
  const std::span<const uint64_t> offsets_, lengths_;
  DescriptorCache& cache_;
  const std::shared_ptr<const RowCheck> check_;
};

}  // namespace headrace
