// Reads whole files with as few system calls as there are: open, fstat, read, close.
#include "reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "error.h"

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

  /// Bytes to read if nothing changes; a pipe or a file of /proc says 0.
  size_t size_hint() const {
    struct stat info{};
    if (::fstat(fd_, &info) != 0) fail();
    return info.st_size > 0 ? static_cast<size_t>(info.st_size) : 0;
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

}  // namespace

std::span<const uint8_t> Reader::read(const Blob& blob) {
  if (blob.path == nullptr) return {blob.data, static_cast<size_t>(blob.size)};
  const File file(blob.path);
  size_t filled = 0;
  size_t wanted = file.size_hint() + 1;  // one byte more than expected, so that one read sees the end of the file
  for (;;) {
    if (capacity_ < wanted) {
      const size_t capacity = (wanted + wanted / 4 + kGrain) / kGrain * kGrain;
      auto larger = std::make_unique_for_overwrite<uint8_t[]>(capacity);
      if (filled > 0) std::memcpy(larger.get(), buffer_.get(), filled);
      buffer_ = std::move(larger);
      capacity_ = capacity;
    }
    const size_t got = file.read(buffer_.get() + filled, capacity_ - filled);
    if (got == 0) return {buffer_.get(), filled};
    filled += got;
    if (filled == capacity_) wanted = capacity_ + 1;
  }
}

}  // namespace headrace
