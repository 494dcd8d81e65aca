// The worker threads: each index runs once, join and wait see all threads end, signals are blocked, threads have names.
#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "core/base/platform/platform.h"
#include "core/base/thread_pool.h"

using namespace headrace;
using namespace std::chrono_literals;

TEST_CASE("every index runs once, and join waits for all of them") {
  std::array<std::atomic<int>, 9> runs{};
  ThreadPool pool;
  pool.start(9, [&](int i) { ++runs[static_cast<size_t>(i)]; });
  CHECK(pool.size() == 9);
  pool.join();
  CHECK(pool.size() == 0);
  for (const auto& count : runs) CHECK(count == 1);
  pool.join();  // no threads are left
}

TEST_CASE("the destructor joins") {
  std::atomic<int> done{0};
  {
    ThreadPool pool;
    pool.start(3, [&](int) { ++done; });
  }
  CHECK(done == 3);
}

TEST_CASE("no threads is a pool too") {
  ThreadPool pool;
  pool.start(0, [](int) {});
  CHECK(pool.size() == 0);
}

TEST_CASE("wait says whether all have returned") {
  std::atomic<bool> leave{false};
  ThreadPool pool;
  CHECK(pool.wait(0ms));
  pool.start(2, [&](int i) {
    while (i == 1 && !leave) sched_yield();
  });
  CHECK_FALSE(pool.wait(20ms));
  leave = true;
  CHECK(pool.wait(1200s));
  CHECK(pool.wait(0ms));
  pool.join();
}

TEST_CASE("threads block every signal, and whoever starts them keeps its mask") {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::atomic<bool> blocked{false};
  ThreadPool pool;
  pool.start(1, [&](int) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGCHLD) == 1;
  });
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  pool.join();
  CHECK(blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1}) {
    CHECK(sigismember(&before, signal) == sigismember(&after, signal));
  }
}

#if HEADRACE_LINUX
TEST_CASE("threads have names that tools show") {
  std::array<char, 16> name{};
  ThreadPool pool;
  pool.start(1, [&](int) { pthread_getname_np(pthread_self(), name.data(), name.size()); });
  pool.join();
  CHECK(std::string(name.data()) == "headrace-0");
}
#endif
