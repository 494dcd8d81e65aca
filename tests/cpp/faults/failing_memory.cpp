// The allocators that the linker and operator new put in place of the real ones.
#include "faults/failing_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <new>

extern "C" {
void* __real_aligned_alloc(size_t alignment, size_t size);
void* __real_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset);
}

namespace {

constexpr int kNever = std::numeric_limits<int>::max();

std::atomic<int> next_number{0}, first_failing{kNever}, first_after{kNever}, failures{0};
thread_local int sound = 0;

bool fails() {
  if (sound > 0) return false;
  const int number = next_number.fetch_add(1);
  if (number < first_failing.load() || number >= first_after.load()) return false;
  failures.fetch_add(1);
  return true;
}

}  // namespace

namespace headrace::test {

FailingMemory::FailingMemory(int first, int count) {
  next_number = 0;
  failures = 0;
  first_after = first + count;
  first_failing = first;
}

FailingMemory::~FailingMemory() { first_failing = first_after = kNever; }

int FailingMemory::failed() const { return failures.load(); }

SoundMemory::SoundMemory() { ++sound; }

SoundMemory::~SoundMemory() { --sound; }

}  // namespace headrace::test

extern "C" {

void* __wrap_aligned_alloc(size_t alignment, size_t size) {
  return fails() ? nullptr : __real_aligned_alloc(alignment, size);
}

void* __wrap_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (!fails()) return __real_mmap(at, bytes, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
}

void* operator new(size_t size) {
  void* memory = fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* operator new(size_t size, std::align_val_t alignment) {
  const auto to = static_cast<size_t>(alignment);
  void* memory = fails() ? nullptr : __real_aligned_alloc(to, (size + to - 1) / to * to);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
