// a + b * c as a C compiler rounds it that may fuse: once on 64-bit Arm, twice elsewhere.
#pragma once

#include <cmath>

namespace headrace::test {

template <class T>
T slow_sum(T a, T b, T c) {
#if defined(__aarch64__)
  return std::fma(b, c, a);
#else
  const T product = b * c;
  return a + product;
#endif
}

}  // namespace headrace::test
