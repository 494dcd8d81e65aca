// A file as a source of bytes.
#pragma once

#include "core/io/source/file_ranges.h"
#include "core/io/tar/tar_walk.h"

namespace headrace {

class FileSource final : public ByteSource {
 public:
  /// Throws Error(kRead) with errno if the file cannot be opened, ArchiveError if it is no regular file.
  explicit FileSource(const char* path);
  uint64_t size() const override { return stamp_.size; }
  size_t read(uint8_t* to, size_t length, uint64_t offset) const override;
  const FileStamp& stamp() const { return stamp_; }

 private:
  const OpenFile file_;
  FileStamp stamp_;
};

}  // namespace headrace
