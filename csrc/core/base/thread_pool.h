// Native threads that run one function each until it returns; they take no signals and touch no Python.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace headrace {

class ThreadPool {
 public:
  ThreadPool() = default;
  /// Joins: whoever owns the pool makes the functions return first.
  ~ThreadPool() { join(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Starts `count` threads; thread i runs body(i). A body lets no exception out. Once, from the owner's thread.
  void start(int count, const std::function<void(int)>& body);
  void join();
  /// True once every function has returned, false when `patience` ran out. Any thread.
  bool wait(std::chrono::milliseconds patience);
  int size() const { return static_cast<int>(threads_.size()); }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  int running_ = 0;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace headrace
