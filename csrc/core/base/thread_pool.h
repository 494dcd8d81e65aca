// Native threads that run one function each until it returns. They block all signals and use no Python objects.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace headrace {

class ThreadPool {
 public:
  ThreadPool() = default;
  /// Joins the threads. The owner makes their functions return first.
  ~ThreadPool() { join(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Starts `count` more threads; the i-th of all runs body(i), which must not throw. One call at a time, with
  /// bind_threads() and size(). Throws std::system_error if a thread cannot start; those that did start continue.
  void start(int count, const std::function<void(int)>& body);
  /// Restricts the threads, and those that start later, to these CPUs, by the operating system's numbers; an empty
  /// list: threads that start later are not restricted any more. Throws std::system_error if no thread may run there.
  void bind_threads(std::span<const int> cpus);
  void join();
  /// Waits until every function has returned; false if `patience` runs out first. Any thread.
  bool wait(std::chrono::milliseconds patience);
  int size() const { return static_cast<int>(threads_.size()); }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  int running_ = 0;  // guarded by mutex_
  std::vector<std::thread> threads_;
  std::vector<int> cpus_;  // none: threads inherit the CPUs of the thread that starts them
};

}  // namespace headrace
