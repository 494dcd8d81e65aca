// Reads a whole file with few system calls: open, fstat, two reads, close. Does not read devices, and of a large file
// that is not a JPEG only the first piece, since folders may contain both. Ranges have readers of their own.
#include "core/io/source/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "core/base/error.h"

namespace headrace {
namespace {

class File {
 public:
  explicit File(const char* path) : fd_(::open(path, O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) fail();
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  struct stat info() const {
    struct stat info{};
    if (::fstat(fd_, &info) != 0) fail();
    return info;
  }

  size_t read(uint8_t* to, size_t limit) const {
    for (;;) {
      const ssize_t got = ::read(fd_, to, limit);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) fail();
    }
  }

 private:
  [[noreturn]] static void fail() {
    const int code = errno;
    throw Error(Stage::kRead, std::generic_category().message(code), code);
  }
  int fd_;
};

constexpr size_t kGrain = size_t{64} << 10;

[[noreturn]] void leave_to_pillow(const char* why) { throw NeedsPillow(Stage::kRead, why); }

bool begins_as_jpeg(std::span<const uint8_t> bytes) {
  constexpr uint8_t kBegin[] = {0xFF, 0xD8, 0xFF};
  return bytes.size() >= sizeof kBegin && std::memcmp(bytes.data(), kBegin, sizeof kBegin) == 0;
}

/// Checks the size of a file from the `bytes` read so far and the number `expected`. Throws as Reader::read does.
void check_size(std::span<const uint8_t> bytes, size_t expected, bool pipe) {
  const size_t size = std::max(bytes.size(), expected);
  if (size <= Reader::kMostOther) return;
  if (pipe && size > Reader::kMostJpeg) throw Error(Stage::kRead, std::generic_category().message(EFBIG), EFBIG);
  if (pipe) return;
  if (size > Reader::kMostJpeg) leave_to_pillow("a file larger than 256 MiB");
  if (!begins_as_jpeg(bytes)) leave_to_pillow("a file larger than 16 MiB that is not a JPEG");
}

}  // namespace

uint8_t* ReadBuffer::make_room(size_t wanted, size_t filled) {
  if (capacity_ >= wanted) return own_.get();
  const size_t capacity = (wanted + wanted / 4 + kGrain) / kGrain * kGrain;
  auto larger = std::make_unique_for_overwrite<uint8_t[]>(capacity);
  if (filled > 0) std::memcpy(larger.get(), own_.get(), filled);
  own_ = std::move(larger);
  capacity_ = capacity;
  return own_.get();
}

std::span<const uint8_t> Reader::read(const Blob& blob, const std::atomic<bool>& cancelled) {
  if (blob.ranges != nullptr) return blob.ranges->read(blob.row, buffer_, cancelled);
  if (blob.path == nullptr) return {blob.data, static_cast<size_t>(blob.size)};
  return read_file(blob.path, buffer_);
}

std::span<const uint8_t> read_file(const char* path, ReadBuffer& buffer, std::optional<FileState>* state) {
  const File file(path);
  const struct stat info = file.info();
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) leave_to_pillow("a device");
  // The size that fstat reports: 0 for a pipe and for a file in /proc.
  const size_t expected = info.st_size > 0 ? static_cast<size_t>(info.st_size) : 0;
  const bool large = expected > Reader::kMostOther;
  size_t filled = 0;
  size_t wanted = large ? kGrain : expected + 1;  // one byte more: room for the read that sees the end
  for (;;) {
    buffer.make_room(wanted, filled);
    const size_t room = buffer.capacity() - filled;
    const size_t got = file.read(buffer.data() + filled, (large && filled == 0 ? kGrain : room));
    if (got == 0) {
      if (state != nullptr) {
        const auto before = state_in(info);
        const bool same = before && before->stamp.size == filled && state_in(file.info()) == before;
        *state = same ? before : std::nullopt;
      }
      return {buffer.data(), filled};
    }
    filled += got;
    check_size({buffer.data(), filled}, expected, S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
    if (large || filled == buffer.capacity()) wanted = std::max(expected, filled) + 1;
  }
}

}  // namespace headrace
