// The inner loops from bytes to normalised float32, one set per instruction set. All sets give the same values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

/// How the bytes of a channel become elements: ((byte / 255) - mean) / deviation, which is entries[byte].
struct ByteChannel {
  const float* entries = nullptr;
  float mean = 0, deviation = 1, inverse = 1;
};

/// Loops over `count` elements of one channel.
struct ByteLoops {
  /// Writes the elements of `own`.
  void (*plain)(const uint8_t* own, float* to, size_t count, const ByteChannel& of);
  /// Writes elements of `other` * rest + elements of `own` * share; the products and the sum are rounded.
  void (*mixed)(const uint8_t* own, const uint8_t* other, float* to, size_t count, const ByteChannel& of, float share,
                float rest);
};

extern const ByteLoops kScalarByteLoops;
#if defined(__x86_64__) || defined(_M_X64)
extern const ByteLoops kAvx2ByteLoops;
extern const ByteLoops kAvx512ByteLoops;
#endif

/// Those of the set named avx2 or avx512; for other names those for any processor. The processor must support the set.
const ByteLoops& byte_loops(const char* name);

}  // namespace headrace
