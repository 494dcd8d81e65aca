// Tells whether this object was made before a fork: threads do not survive one, and a lock may be held for ever.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace headrace {

/// How many forks lie between the first process and this one (since the first call).
inline uint32_t fork_generation() {
  static std::atomic<uint32_t> generation{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); });
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

/// A member of every object that owns threads or locks: in a forked child such an object must be left alone.
class ForkGuard {
 public:
  bool forked() const { return fork_generation() != born_; }

 private:
  uint32_t born_ = fork_generation();
};

}  // namespace headrace
