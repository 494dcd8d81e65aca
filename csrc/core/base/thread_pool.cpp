// Starts and joins the worker threads.
#include "core/base/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <new>
#include <string>
#include <system_error>

#include "core/base/platform/this_thread.h"
#include "core/base/platform/thread_cpus.h"

namespace headrace {
namespace {

void bind_to_cpus(std::thread& thread, std::span<const int> cpus) {
  const int error = restrict_thread(thread, cpus);
  if (error == ENOMEM) throw std::bad_alloc();
  if (error != 0) throw std::system_error(error, std::generic_category(), "the threads cannot run on these CPUs");
}

}  // namespace

void ThreadPool::start(int count, const std::function<void(int)>& body) {
  // Threads inherit this mask, so signals such as SIGINT go to the main thread, where Python handles them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    const int before_these = size();
    threads_.reserve(static_cast<size_t>(before_these + count));
    for (int i = before_these; i < before_these + count; ++i) {
      try {
        threads_.emplace_back([this, body, i] {
          name_this_thread("headrace-" + std::to_string(i));
          body(i);
          const std::lock_guard lock(mutex_);
          --running_;
          ended_.notify_all();
        });
      } catch (const std::system_error& error) {
        // what() of the library's own error is the text of its code alone.
        throw std::system_error(error.code(), "thread " + std::to_string(i + 1 - before_these) + " of " +
                                                  std::to_string(count) +
                                                  " cannot start; use fewer workers, or raise the limit of processes "
                                                  "(ulimit -u, pids.max of the control group)");
      }
      {
        const std::lock_guard lock(mutex_);
        ++running_;  // may be negative before this: the thread can end first
      }
      if (!cpus_.empty()) bind_to_cpus(threads_.back(), cpus_);
    }
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ThreadPool::bind_threads(std::span<const int> cpus) {
  if (!cpus.empty()) {
    for (std::thread& thread : threads_) bind_to_cpus(thread, cpus);
  }
  cpus_.assign(cpus.begin(), cpus.end());
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
