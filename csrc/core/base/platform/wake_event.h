// A descriptor by which threads wake one that waits in poll, select or an event loop.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "core/base/platform/platform.h"

#if HEADRACE_LINUX
#include <sys/eventfd.h>
#else
#include <fcntl.h>
#endif

namespace headrace {

/// An eventfd; elsewhere a pipe. Any thread may call any method.
class WakeEvent {
 public:
  /// Throws std::system_error if the process has no descriptor left.
  WakeEvent() {
#if HEADRACE_LINUX
    read_ = write_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (read_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
#else
    int ends[2];
    if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    for (const int one : ends) {
      ::fcntl(one, F_SETFD, FD_CLOEXEC);
      ::fcntl(one, F_SETFL, O_NONBLOCK);
    }
    read_ = ends[0];
    write_ = ends[1];
#endif
  }
  ~WakeEvent() {
    ::close(read_);
    if (write_ != read_) ::close(write_);
  }
  WakeEvent(const WakeEvent&) = delete;
  WakeEvent& operator=(const WakeEvent&) = delete;

  /// Readable after a signal() until clear(). Not to be read from.
  int descriptor() const noexcept { return read_; }
  void signal() const noexcept {
    const uint64_t one = 1;
    (void)!::write(write_, &one, sizeof one);  // a full counter or pipe is also readable
  }
  void clear() const noexcept {
    uint64_t ignored = 0;
    while (::read(read_, &ignored, sizeof ignored) > 0) {
    }
  }

 private:
  int read_ = -1, write_ = -1;
};

}  // namespace headrace
