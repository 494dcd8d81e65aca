// The loops of byte_loops.h for registers of any width: the compiler makes vectors of them, with fused multiply-adds
// only where they are written. The file of each instruction set includes this header; all definitions are internal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/byte_mixing/byte_loops.h"

namespace headrace {
namespace {

// Markstein's method: see normalisation.h.
inline float quotient(float value, float by, float inverse) {
  const float near = value * inverse;
  return __builtin_fmaf(__builtin_fmaf(-near, by, value), inverse, near);
}

inline float element(uint8_t byte, const ByteChannel& of) {
  const float unit = quotient(static_cast<float>(byte), 255.0F, 1.0F / 255.0F);
  return quotient(unit - of.mean, of.deviation, of.inverse);
}

void plain(const uint8_t* __restrict own, float* __restrict to, size_t count, const ByteChannel& channel) {
  const ByteChannel of = channel;
  for (size_t i = 0; i < count; ++i) to[i] = element(own[i], of);
}

void mixed(const uint8_t* __restrict own, const uint8_t* __restrict other, float* __restrict to, size_t count,
           const ByteChannel& channel, float share, float rest) {
  const ByteChannel of = channel;
  for (size_t i = 0; i < count; ++i) {
    const float its = element(other[i], of) * rest, mine = element(own[i], of) * share;
    to[i] = its + mine;
  }
}

}  // namespace
}  // namespace headrace
