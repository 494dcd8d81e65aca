// Native threads that run one function each until it returns; they take no signals and touch no Python.
#pragma once

#include <functional>
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
  int size() const { return static_cast<int>(threads_.size()); }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace headrace
