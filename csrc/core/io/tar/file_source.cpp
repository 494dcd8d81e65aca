// Reads an archive's headers; files are stamped when they are opened, so later changes are detected.
#include "core/io/tar/file_source.h"

namespace headrace {

FileSource::FileSource(const char* path) : file_(path) {
  const std::optional<FileState> state = state_of(file_);
  if (!state) throw ArchiveError("it is no regular file");
  stamp_ = state->stamp;
}

size_t FileSource::read(uint8_t* to, size_t length, uint64_t offset) const {
  return static_cast<size_t>(read_at(file_, to, length, offset));
}

}  // namespace headrace
