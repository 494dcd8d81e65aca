// Makes allocations of this process fail on request: operator new, std::aligned_alloc and mmap of the code under test.
#pragma once

namespace headrace::test {

/// While it lives, the allocation number `first`, counted from 0 in all threads, and the `count - 1` after it fail.
class FailingMemory {
 public:
  FailingMemory(int first, int count);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  /// How many allocations have failed so far.
  int failed() const;
};

/// While it lives, allocations of this thread do not fail and are not counted: the test's own.
class SoundMemory {
 public:
  SoundMemory();
  ~SoundMemory();
  SoundMemory(const SoundMemory&) = delete;
  SoundMemory& operator=(const SoundMemory&) = delete;
};

}  // namespace headrace::test
