// Detects objects that were made before a fork: threads do not survive a fork, and a lock may stay held for ever.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace headrace {

/// Number of forks between the process that called this first and the current process. Any thread.
inline uint32_t fork_generation() {
  static std::atomic<uint32_t> generation{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); });
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

/// A member of every object that owns threads or locks. A forked child must not use such an object.
class ForkGuard {
 public:
  bool forked() const { return fork_generation() != born_; }

 private:
  uint32_t born_ = fork_generation();
};

}  // namespace headrace
