// A buffer that bytes are received into without clearing it first, and its shared read-only form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace headrace {

/// Leaves new elements uninitialised: bytes are received into them.
template <class T>
struct Uninitialised : std::allocator<T> {
  template <class Other>
  struct rebind {
    using other = Uninitialised<Other>;
  };
  template <class Element>
  void construct(Element* at) noexcept {
    ::new (static_cast<void*>(at)) Element;
  }
  template <class Element, class... Values>
  void construct(Element* at, Values&&... values) {
    ::new (static_cast<void*>(at)) Element(std::forward<Values>(values)...);
  }
};
using ByteBuffer = std::vector<uint8_t, Uninitialised<uint8_t>>;
using SharedBytes = std::shared_ptr<const ByteBuffer>;

/// A copy that can be shared.
inline SharedBytes copy_of(std::span<const uint8_t> bytes) {
  auto made = std::make_shared<ByteBuffer>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), made->begin());
  return made;
}

}  // namespace headrace
