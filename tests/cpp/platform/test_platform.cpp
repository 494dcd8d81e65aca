// What differs between operating systems: Linux's version, and with HEADRACE_PORTABLE the one for all others.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/platform/file_time.h"
#include "core/base/platform/page_cache.h"
#include "core/base/platform/pages.h"
#include "core/base/platform/platform.h"
#include "core/base/platform/shared_memory.h"
#include "core/base/platform/this_thread.h"
#include "core/base/platform/thread_cpus.h"
#include "core/base/platform/wake_event.h"
#include "support/temporary_folder.h"

using namespace headrace;
using namespace headrace::test;

namespace {

bool readable(int descriptor) {
  struct pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

// Memory of its own pages.
struct Mapped {
  explicit Mapped(size_t size)
      : bytes(size), at(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(at != MAP_FAILED);
  }
  ~Mapped() { ::munmap(at, bytes); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  uint8_t* data() const { return static_cast<uint8_t*>(at); }

  size_t bytes;
  void* at;
};

}  // namespace

TEST_CASE("each thread has a number of its own, which stays") {
  std::array<int64_t, 4> ids{};
  std::atomic<int> here{0};
  std::vector<std::thread> threads;
  for (int64_t& id : ids) {
    threads.emplace_back([&] {
      id = this_thread_id();
      here.fetch_add(1);
      while (here.load() < 4) std::this_thread::yield();  // all live at once: Linux may use a number again
      if (this_thread_id() != id) id = 0;
    });
  }
  for (std::thread& one : threads) one.join();
  std::set<int64_t> all(ids.begin(), ids.end());
  all.insert(this_thread_id());
  CHECK(all.size() == 5);
  CHECK(*all.begin() > 0);
#if HEADRACE_LINUX
  CHECK(this_thread_id() == ::getpid());  // of the main thread
#endif
}

TEST_CASE("a long name of a thread is cut") {
  std::array<char, 16> name{};
  std::thread([&] {
    name_this_thread("headrace-123456789");
    pthread_getname_np(pthread_self(), name.data(), name.size());
  }).join();
#if HEADRACE_LINUX
  CHECK(std::string(name.data()) == "headrace-123456");
#else
  CHECK(std::string(name.data()).find("headrace-1") == std::string::npos);
#endif
}

TEST_CASE("waiting is counted where the system counts it") {
  const int64_t before = waits_of_this_thread();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
#if HEADRACE_LINUX
  CHECK(waits_of_this_thread() > before);
#else
  CHECK(waits_of_this_thread() == before);
#endif
}

TEST_CASE("a thread cannot be restricted to CPUs that there are not") {
  std::atomic<bool> leave{false};
  std::thread thread([&] {
    while (!leave) std::this_thread::yield();
  });
  const std::vector<int> none{5000};
#if HEADRACE_LINUX
  CHECK(restrict_thread(thread, none) == EINVAL);
#else
  CHECK(restrict_thread(thread, none) == ENOTSUP);
#endif
  leave = true;
  thread.join();
}

TEST_CASE("an event is readable from its signal until it is cleared") {
  const WakeEvent event;
  CHECK_FALSE(readable(event.descriptor()));
  event.clear();  // does not wait
  for (int i = 0; i < 3; ++i) event.signal();
  CHECK(readable(event.descriptor()));
  event.clear();
  CHECK_FALSE(readable(event.descriptor()));
  event.signal();
  CHECK(readable(event.descriptor()));
}

TEST_CASE("more signals than a pipe holds neither wait nor get lost") {
  const WakeEvent event;
  for (int i = 0; i < 20'000; ++i) event.signal();
  CHECK(readable(event.descriptor()));
  event.clear();
  CHECK_FALSE(readable(event.descriptor()));
  event.signal();
  CHECK(readable(event.descriptor()));
}

TEST_CASE("an event is not inherited by a program that is started, and its descriptors are closed") {
  int descriptor = -1;
  {
    const WakeEvent event;
    descriptor = event.descriptor();
    CHECK((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(::fcntl(descriptor, F_GETFD) == -1);
}

TEST_CASE("without a descriptor there is no event") {
  struct rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const struct rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  CHECK_THROWS_AS(WakeEvent(), std::system_error);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE("a signal of another thread ends a wait") {
  const WakeEvent event;
  std::thread other([&] { event.signal(); });
  struct pollfd one{event.descriptor(), POLLIN, 0};
  CHECK(::poll(&one, 1, 60'000) == 1);
  other.join();
}

TEST_CASE("advice about memory changes none of it") {
  const Mapped memory(size_t{4} << 20);
  std::memset(memory.data(), 7, memory.bytes);
  prefer_huge_pages(memory.data(), memory.bytes);
  request_memory(memory.data() + 100, memory.bytes - 200);
  request_memory(memory.data() + 5, 0);
  for (size_t i = 0; i < memory.bytes; ++i) REQUIRE(memory.data()[i] == 7);
  CHECK(is_in_memory(memory.data() + 4097));
  request_memory(nullptr, 1);  // errors have no effect
}

#if HEADRACE_LINUX
TEST_CASE("a page that was never written to is not in memory") {
  const Mapped memory(size_t{1} << 20);
  memory.data()[0] = 1;
  CHECK(is_in_memory(memory.data()));
  CHECK_FALSE(is_in_memory(memory.data() + memory.bytes - 1));
}
#endif

TEST_CASE("the time of a file has nanoseconds") {
  const TemporaryFolder folder;
  const std::string path = folder.file("some", {1, 2, 3});
  const std::array<struct timespec, 2> times{{{1, 2}, {1'234'567'890, 987'654'321}}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) == 0);
  struct stat info{};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK(modified_ns(info) == 1'234'567'890'987'654'321);
  const int file = ::open(path.c_str(), O_RDONLY);
  request_file(file, 0, 3);
  request_file(-1, 0, 3);  // errors have no effect
  ::close(file);
}

TEST_CASE("forked processes share memory, and others by its descriptor") {
  constexpr size_t kBytes = size_t{1} << 20;
  SharedMemory memory(kBytes);
  CHECK(memory.size() == kBytes);
  CHECK(memory.make_present(0, kBytes));
  CHECK(memory.data()[kBytes - 1] == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    memory.data()[5] = 7;
    ::_exit(0);
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(memory.data()[5] == 7);
  {
    const SharedMemory same(memory.descriptor(), kBytes), longer(memory.descriptor(), kBytes + 4096);
    CHECK(longer.data() == nullptr);
    CHECK((same.data() != nullptr) == (HEADRACE_LINUX != 0));
    if (same.data() != nullptr) {
      CHECK(same.data()[5] == 7);
      CHECK(same.descriptor() == -1);
    }
  }
  if (HEADRACE_LINUX) CHECK(::fcntl(memory.descriptor(), F_GETFD) == FD_CLOEXEC);  // still open
}

TEST_CASE("shared memory without end is refused, and leaves no descriptor") {
  const auto descriptors = [] { return ::dup(0); };
  const int before = descriptors();
  ::close(before);
  CHECK_THROWS_AS(SharedMemory(size_t{1} << 62), std::bad_alloc);
  const int after = descriptors();
  ::close(after);
  CHECK(after == before);
}
