// A library that is loaded ahead of the C library (LD_PRELOAD): makes system calls on files below one folder fail or
// stall, threads fail to start, and allocations of one module fail. What, and how often, is read from the board, a
// file that is mapped by all processes of a soak; bench/soak/board.py has the same layout.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

namespace {

enum Kind {
  kOpenMissing,
  kOpenFails,
  kReadFails,
  kReadInterrupted,
  kReadShort,
  kReadEnds,
  kReadStalls,
  kWriteFull,
  kNoThread,
  kNoMemory,
  kKinds
};

struct Board {
  std::atomic<uint64_t> armed, draws, rates[kKinds], counts[kKinds];
};

constexpr int kMostFiles = 1 << 16;

Board* board = nullptr;
char root[4096];
size_t root_length = 0;
std::atomic<bool> watched[kMostFiles];
std::atomic<uintptr_t> module_begin{0}, module_end{0};

uint64_t mixed(uint64_t x) {  // the finaliser of splitmix64
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// Decides whether this call fails, and counts it. A rate is the chance times 2^32.
bool strikes(Kind kind, uint64_t* drawn = nullptr) {
  if (board == nullptr || board->armed.load(std::memory_order_relaxed) == 0) return false;
  const uint64_t rate = board->rates[kind].load(std::memory_order_relaxed);
  if (rate == 0) return false;
  const uint64_t x = mixed(board->draws.fetch_add(1, std::memory_order_relaxed));
  if ((x >> 32) >= rate) return false;
  board->counts[kind].fetch_add(1, std::memory_order_relaxed);
  if (drawn != nullptr) *drawn = mixed(x);
  return true;
}

bool is_below_root(const char* path) { return root_length > 0 && std::strncmp(path, root, root_length) == 0; }
bool is_watched(int file) { return file >= 0 && file < kMostFiles && watched[file].load(std::memory_order_relaxed); }

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

__attribute__((constructor)) void begin() {
  const char* const path = std::getenv("HEADRACE_SOAK_BOARD");
  const char* const folder = std::getenv("HEADRACE_SOAK_ROOT");
  if (path == nullptr || folder == nullptr || std::strlen(folder) >= sizeof root) return;
  const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0));
  if (file < 0) return;
  void* const at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (at == MAP_FAILED) return;
  root_length = std::strlen(folder);
  std::memcpy(root, folder, root_length);
  board = static_cast<Board*>(at);
}

/// The outcome of opening `path`: true if it fails, with errno.
bool open_fails(const char* path) {
  if (!is_below_root(path)) return false;
  if (strikes(kOpenMissing)) {
    errno = ENOENT;
    return true;
  }
  if (strikes(kOpenFails)) {
    errno = EIO;
    return true;
  }
  return false;
}

int opened(int file, const char* path) {
  if (file >= 0 && file < kMostFiles) watched[file].store(is_below_root(path), std::memory_order_relaxed);
  return file;
}

template <class Read>
ssize_t faulty_read(int file, size_t size, Read read) {
  if (size == 0 || !is_watched(file)) return read(size);
  uint64_t drawn = 0;
  if (strikes(kReadStalls, &drawn)) {
    const timespec time{0, static_cast<long>(1'000'000 + drawn % 40'000'000)};
    nanosleep(&time, nullptr);
  }
  if (strikes(kReadInterrupted)) {
    errno = EINTR;
    return -1;
  }
  if (strikes(kReadFails)) {
    errno = EIO;
    return -1;
  }
  if (strikes(kReadEnds)) return 0;
  if (size > 1 && strikes(kReadShort, &drawn)) size = 1 + drawn % (size < 4096 ? size - 1 : 4095);
  return read(size);
}

bool is_of_module(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  return at >= module_begin.load(std::memory_order_relaxed) && at < module_end.load(std::memory_order_relaxed);
}

/// Fails no allocation of a thread that holds the GIL: there pybind11 makes Python's objects, and where it has no
/// memory to register one it frees the C++ object that its caller frees, too.
bool memory_fails(const void* caller) {
  if (!is_of_module(caller)) return false;
  static const auto holds_gil = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return (holds_gil == nullptr || holds_gil() == 0) && strikes(kNoMemory);
}

int find_module(dl_phdr_info* info, size_t, void* wanted) {
  if (std::strstr(info->dlpi_name, static_cast<const char*>(wanted)) == nullptr) return 0;
  uintptr_t first = UINTPTR_MAX, last = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    first = from < first ? from : first;
    last = from + info->dlpi_phdr[i].p_memsz > last ? from + info->dlpi_phdr[i].p_memsz : last;
  }
  module_begin = first;
  module_end = last;
  return 1;
}

}  // namespace

extern "C" {

/// Names the module whose allocations fail, by a part of its path. Returns 0 if it is not loaded.
int headrace_soak_module(const char* part) { return dl_iterate_phdr(find_module, const_cast<char*>(part)); }

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  return open_fails(path) ? -1 : opened(syscall(SYS_openat, AT_FDCWD, path, flags, mode), path);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  return open_fails(path) ? -1 : opened(syscall(SYS_openat, AT_FDCWD, path, flags, mode), path);
}

int __open_2(const char* path, int flags) { return open(path, flags, 0); }
int __open64_2(const char* path, int flags) { return open(path, flags, 0); }

int close(int file) {
  if (file >= 0 && file < kMostFiles) watched[file].store(false, std::memory_order_relaxed);
  static const auto function = real<int (*)(int)>("close");
  return function(file);
}

ssize_t read(int file, void* to, size_t size) {
  static const auto function = real<ssize_t (*)(int, void*, size_t)>("read");
  return faulty_read(file, size, [&](size_t some) { return function(file, to, some); });
}

ssize_t __read_chk(int file, void* to, size_t size, size_t room) {
  if (size > room) std::abort();
  return read(file, to, size);
}

ssize_t pread(int file, void* to, size_t size, off_t offset) {
  static const auto function = real<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  return faulty_read(file, size, [&](size_t some) { return function(file, to, some, offset); });
}

ssize_t pread64(int file, void* to, size_t size, off64_t offset) { return pread(file, to, size, offset); }

ssize_t __pread_chk(int file, void* to, size_t size, off_t offset, size_t room) {
  if (size > room) std::abort();
  return pread(file, to, size, offset);
}

ssize_t __pread64_chk(int file, void* to, size_t size, off64_t offset, size_t room) {
  return __pread_chk(file, to, size, offset, room);
}

ssize_t write(int file, const void* from, size_t size) {
  static const auto function = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (is_watched(file) && strikes(kWriteFull)) {
    errno = ENOSPC;
    return -1;
  }
  return function(file, from, size);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*call)(void*), void* argument) {
  static const auto function =
      real<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return strikes(kNoThread) ? EAGAIN : function(thread, attributes, call, argument);
}

void* aligned_alloc(size_t alignment, size_t size) {
  static const auto function = real<void* (*)(size_t, size_t)>("aligned_alloc");
  if (!memory_fails(__builtin_return_address(0))) return function(alignment, size);
  errno = ENOMEM;
  return nullptr;
}
}

void* operator new(size_t size) {
  void* const memory = memory_fails(__builtin_return_address(0)) ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* operator new[](size_t size) {
  void* const memory = memory_fails(__builtin_return_address(0)) ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
