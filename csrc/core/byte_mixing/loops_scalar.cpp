// The loops from bytes to normalised float32 for any processor, the reference: by table. And the choice among the sets.
#include <cstring>

#include "core/byte_mixing/byte_loops.h"

namespace headrace {
namespace {

void plain(const uint8_t* own, float* to, size_t count, const ByteChannel& of) {
  for (size_t i = 0; i < count; ++i) to[i] = of.entries[own[i]];
}

void mixed(const uint8_t* own, const uint8_t* other, float* to, size_t count, const ByteChannel& of, float share,
           float rest) {
  for (size_t i = 0; i < count; ++i) to[i] = of.entries[other[i]] * rest + of.entries[own[i]] * share;
}

}  // namespace

const ByteLoops kScalarByteLoops{plain, mixed};

const ByteLoops& byte_loops([[maybe_unused]] const char* name) {
#if defined(__x86_64__) || defined(_M_X64)
  if (std::strcmp(name, "avx512") == 0) return kAvx512ByteLoops;
  if (std::strcmp(name, "avx2") == 0) return kAvx2ByteLoops;
#endif
  return kScalarByteLoops;
}

}  // namespace headrace
