// Requests files, ranges and mapped memory: the kernel begins the transfer and returns.
#include "core/io/source/read_ahead.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/platform/page_cache.h"
#include "core/io/source/byte_ranges.h"

namespace headrace {
namespace {

void prepare_file(const char* path) {
  struct stat info{};
  // Opening a pipe would wait for its writer, and opening a device may change it.
  if (::stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return;
  request_file(file, 0, ReadAhead::kMostBytes);
  ::close(file);
}

}  // namespace

void prepare(const Blob& blob) noexcept {
  if (blob.ranges != nullptr) {
    blob.ranges->prepare(blob.row);
  } else if (blob.path != nullptr) {
    prepare_file(blob.path);
  } else if (blob.data != nullptr && blob.size > 0) {
    request_memory(blob.data, blob.size);
  }
}

}  // namespace headrace
