// Starts and joins the worker threads.
#include "core/base/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <string>

namespace headrace {

void ThreadPool::start(int count, const std::function<void(int)>& body) {
  // Threads inherit this mask, so signals such as SIGINT go to the main thread, where Python handles them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    threads_.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, body, i] {
        body(i);
        const std::lock_guard lock(mutex_);
        --running_;
        ended_.notify_all();
      });
      {
        const std::lock_guard lock(mutex_);
        ++running_;  // may be negative before this: the thread can end first
      }
      pthread_setname_np(threads_.back().native_handle(), ("headrace-" + std::to_string(i)).substr(0, 15).c_str());
    }
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool ThreadPool::wait(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, patience, [&] { return running_ == 0; });
}

void ThreadPool::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace headrace
