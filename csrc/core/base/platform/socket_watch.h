// Waits until one of many sockets can be read or written.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <vector>

#include "core/base/platform/platform.h"

#if HEADRACE_LINUX
#include <sys/epoll.h>
#else
#include <poll.h>

#include <algorithm>
#endif

namespace headrace {

/// An epoll instance, whose waits cost the same for any number of sockets; elsewhere a list for poll(). One thread.
class SocketWatch {
 public:
#if HEADRACE_LINUX
  /// Throws std::system_error if the process has no descriptor left.
  SocketWatch() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  }
  ~SocketWatch() { ::close(epoll_); }

  /// Watches a descriptor until it is closed: whether it can be read, its peer has closed, or with `writing` it can be
  /// written. `owner` is what wait() returns. Returns false if that is not possible.
  bool add(int descriptor, void* owner) noexcept { return control(EPOLL_CTL_ADD, descriptor, owner, false); }
  bool set_writing(int descriptor, void* owner, bool writing) noexcept {
    return control(EPOLL_CTL_MOD, descriptor, owner, writing);
  }
  /// Must be called before a descriptor is closed, even if it could not be added.
  void remove(int descriptor) noexcept { (void)control(EPOLL_CTL_DEL, descriptor, nullptr, false); }

  /// Waits up to this number of milliseconds (-1: without a limit) and calls `found` with the owner of each descriptor
  /// that has an event.
  template <typename Found>
  void wait(int patience_ms, Found found) {
    epoll_event events[kMost];
    const int count = ::epoll_wait(epoll_, events, kMost, patience_ms);
    for (int i = 0; i < count; ++i) found(events[i].data.ptr);
  }

 private:
  static constexpr int kMost = 64;

  bool control(int operation, int descriptor, void* owner, bool writing) noexcept {
    epoll_event event{};
    event.events = EPOLLIN | (writing ? static_cast<uint32_t>(EPOLLOUT) : 0u);
    event.data.ptr = owner;
    return ::epoll_ctl(epoll_, operation, descriptor, &event) == 0;
  }

  const int epoll_;
#else
  SocketWatch() = default;

  bool add(int descriptor, void* owner) {
    polled_.push_back({descriptor, POLLIN, 0});
    owners_.push_back(owner);
    return true;
  }
  bool set_writing(int descriptor, void*, bool writing) {
    polled_[index_of(descriptor)].events = static_cast<short>(writing ? POLLIN | POLLOUT : POLLIN);
    return true;
  }
  void remove(int descriptor) {
    const auto at = static_cast<std::ptrdiff_t>(index_of(descriptor));
    if (at == static_cast<std::ptrdiff_t>(polled_.size())) return;
    polled_.erase(polled_.begin() + at);
    owners_.erase(owners_.begin() + at);
  }

  template <typename Found>
  void wait(int patience_ms, Found found) {
    if (::poll(polled_.data(), static_cast<nfds_t>(polled_.size()), patience_ms) <= 0) return;
    for (size_t i = 0; i < polled_.size(); ++i) {
      if (polled_[i].revents != 0) found(owners_[i]);
    }
  }

 private:
  size_t index_of(int descriptor) const {
    const auto has = [&](const pollfd& one) { return one.fd == descriptor; };
    return static_cast<size_t>(std::find_if(polled_.begin(), polled_.end(), has) - polled_.begin());
  }

  std::vector<pollfd> polled_;
  std::vector<void*> owners_;
#endif

 public:
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;
};

}  // namespace headrace
