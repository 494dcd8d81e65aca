// The calling thread: its number, its name, and how often it had to wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "core/base/platform/platform.h"

#if HEADRACE_LINUX
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace headrace {

/// The thread as the operating system numbers it, which is Python's `threading.get_native_id()`. Elsewhere a number
/// that no other thread of the process has.
inline int64_t this_thread_id() {
#if HEADRACE_LINUX
  return ::syscall(SYS_gettid);
#else
  static std::atomic<int64_t> last{0};
  thread_local const int64_t mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return mine;
#endif
}

/// Gives the thread a name that tools show, cut to 15 bytes. Elsewhere it does nothing.
inline void name_this_thread(const std::string& name) noexcept {
#if HEADRACE_LINUX
  constexpr size_t kMost = 15;
  char shown[kMost + 1] = {};
  name.copy(shown, kMost);
  pthread_setname_np(pthread_self(), shown);
#else
  (void)name;
#endif
}

/// How many times the thread gave its core away to wait for something, such as a disk, for any file system. Being
/// displaced by another thread does not count. Elsewhere 0.
inline int64_t waits_of_this_thread() noexcept {
#if HEADRACE_LINUX
  struct rusage used{};
  if (::getrusage(RUSAGE_THREAD, &used) == 0) return used.ru_nvcsw;
#endif
  return 0;
}

}  // namespace headrace
