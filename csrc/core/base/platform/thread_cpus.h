// Restricts a thread to some CPUs.
#pragma once

#include <cerrno>
#include <span>
#include <thread>

#include "core/base/platform/platform.h"

#if HEADRACE_LINUX
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#endif

namespace headrace {

/// Restricts a thread to these CPUs, which the operating system numbers. Returns 0, or errno: EINVAL if it may run on
/// none of them, ENOTSUP where the system has no such call.
inline int restrict_thread(std::thread& thread, std::span<const int> cpus) noexcept {
#if HEADRACE_LINUX
  int most = 0;
  for (const int cpu : cpus) most = std::max(most, cpu);
  // A set for as many CPUs as the largest number needs: cpu_set_t ends at 1024.
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(most + 1),
                                                             [](cpu_set_t* one) { CPU_FREE(one); });
  if (set == nullptr) return ENOMEM;
  const size_t bytes = CPU_ALLOC_SIZE(most + 1);
  CPU_ZERO_S(bytes, set.get());
  for (const int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes, set.get());
  return pthread_setaffinity_np(thread.native_handle(), bytes, set.get());
#else
  (void)thread, (void)cpus;
  return ENOTSUP;
#endif
}

}  // namespace headrace
