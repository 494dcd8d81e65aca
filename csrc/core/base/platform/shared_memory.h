// Memory that processes share: forked ones inherit it, others map it by a descriptor.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

#include "core/base/platform/platform.h"

#if HEADRACE_LINUX
#include <fcntl.h>
#endif

namespace headrace {

/// Mapped memory of a file without a name, which the system frees with the last process that has it. Pages take memory
/// once they are written to or read. Without such files (not Linux) only forked processes share it.
class SharedMemory {
 public:
  /// New memory, zeroed. Throws std::bad_alloc.
  explicit SharedMemory(size_t bytes) : bytes_(bytes) {
    int flags = MAP_SHARED | MAP_NORESERVE;
#if HEADRACE_LINUX
    descriptor_ = ::memfd_create("headrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    // The seals forbid a shorter file: an access after its end would raise SIGBUS.
    if (descriptor_ >= 0 &&
        (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0 || ::fcntl(descriptor_, F_ADD_SEALS, kSeals) != 0))
      forget_file();
#endif
    if (descriptor_ < 0) flags |= MAP_ANONYMOUS;
    if (!map(flags)) {
      forget_file();
      throw std::bad_alloc();
    }
  }

  /// The memory of `bytes` bytes that another process has made, by a descriptor of it, which stays the caller's.
  /// data() is null where the descriptor leads to something else.
  SharedMemory(int descriptor, size_t bytes) : bytes_(bytes) {
#if HEADRACE_LINUX
    struct stat found;
    if ((::fcntl(descriptor, F_GET_SEALS) & kSeals) != kSeals || ::fstat(descriptor, &found) != 0 ||
        static_cast<uint64_t>(found.st_size) != bytes)
      return;
    descriptor_ = descriptor;
    map(MAP_SHARED | MAP_NORESERVE);
    descriptor_ = -1;
#else
    (void)descriptor;
#endif
  }

  ~SharedMemory() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
    forget_file();
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return bytes_; }
  /// For processes that are not forked; -1: they cannot have it.
  int descriptor() const { return descriptor_; }

  /// Gives memory to whole pages, which may be used without this, but then an access for which there is no memory ends
  /// the process. False: there is none.
  bool make_present(size_t begin, size_t end) const noexcept {
#if HEADRACE_LINUX
    constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, since Linux 5.14
    while (::madvise(data_ + begin, end - begin, kPopulateWrite) != 0)
      if (errno != EINTR && errno != EAGAIN) return errno == EINVAL;
#else
    (void)begin, (void)end;
#endif
    return true;
  }

 private:
#if HEADRACE_LINUX
  static constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
#endif

  bool map(int flags) {
    void* const made = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, descriptor_, 0);
    if (made == MAP_FAILED) return false;
    data_ = static_cast<uint8_t*>(made);
    return true;
  }

  void forget_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

  const size_t bytes_;
  uint8_t* data_ = nullptr;
  int descriptor_ = -1;
};

}  // namespace headrace
