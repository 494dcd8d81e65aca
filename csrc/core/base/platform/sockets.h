// Connected sockets that one thread serves: they do not block, and a closed peer raises no signal.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <cstddef>

#include "core/base/platform/platform.h"

namespace headrace {

#ifdef MSG_NOSIGNAL
inline constexpr int kNoSignal = MSG_NOSIGNAL;
#else
inline constexpr int kNoSignal = 0;
#endif

/// Returns whether the socket can be used.
inline bool prepare_socket(int descriptor) noexcept {
#ifdef SO_NOSIGPIPE
  const int on = 1;
  if (::setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) != 0) return false;
#endif
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0;
}

/// Sets SO_RCVLOWAT (best effort): poll() reports the socket only when `count` bytes have arrived, or its peer has
/// closed.
inline void wait_for_bytes(int descriptor, size_t count) noexcept {
  constexpr size_t kMost = 256 << 10;  // more would need a larger buffer in the kernel
  const int least = static_cast<int>(count < kMost ? count : kMost);
  (void)!::setsockopt(descriptor, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

}  // namespace headrace
