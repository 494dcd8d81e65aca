// Reads at offsets: most headers are in the first bytes.
#include "core/audio/wav_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "core/io/source/file_ranges.h"

namespace headrace {
namespace {

/// Returns the path of a regular file. Throws NotPlainWav for a pipe, which must not be opened here: FFmpeg may read
/// it, once.
const char* regular(const char* path) {
  struct stat info{};
  if (::stat(path, &info) == 0 && !S_ISREG(info.st_mode)) throw NotPlainWav("not a regular file");
  return path;
}

}  // namespace

WavFile::WavFile(const char* path) : file_(regular(path)) {
  if (const std::optional<FileState> state = state_of(file_)) size_ = state->stamp.size;
  head_ = read_at(file_, first_.data(), std::min<uint64_t>(size_, first_.size()), 0);
}

void WavFile::read(std::span<uint8_t> to, uint64_t offset) const {
  read_ += to.size();
  if (offset + to.size() <= head_) {
    std::memcpy(to.data(), first_.data() + offset, to.size());
  } else if (read_at(file_, to.data(), to.size(), offset) < to.size()) {
    throw Error(Stage::kRead, "the file became shorter while it was read", EIO);
  }
}

}  // namespace headrace
