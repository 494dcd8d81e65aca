// An array of trivial elements, aligned to cache lines. resize() neither clears nor copies, so reuse costs nothing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace headrace {

inline constexpr size_t kCacheLine = 64;

template <class T>
class AlignedArray {
  static_assert(std::is_trivial_v<T>);

 public:
  /// Leaves the values of all elements unspecified. Throws std::bad_alloc.
  void resize(size_t size) {
    const size_t bytes = (size * sizeof(T) + kCacheLine - 1) / kCacheLine * kCacheLine;
    if (bytes > capacity_) {
      memory_.reset();  // before the allocation, so that the two blocks never coexist
      capacity_ = 0;
      memory_.reset(static_cast<T*>(std::aligned_alloc(kCacheLine, bytes)));
      if (!memory_) throw std::bad_alloc();
      capacity_ = bytes;
    }
    size_ = size;
  }
  size_t size() const { return size_; }
  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  T& operator[](size_t i) { return memory_.get()[i]; }
  const T& operator[](size_t i) const { return memory_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, Free> memory_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace headrace
