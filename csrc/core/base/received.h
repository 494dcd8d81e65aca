// Bytes that were received, and are read by several owners.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
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
using Received = std::vector<uint8_t, Uninitialised<uint8_t>>;
using SharedBytes = std::shared_ptr<const Received>;

}  // namespace headrace
