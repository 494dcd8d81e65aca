// The inner loops of mixing, one set per instruction set. All sets give the same values as the scalar one.
#pragma once

#include <cstddef>

namespace headrace {

enum class MixType { kFloat16, kBfloat16, kFloat32, kFloat64 };

inline constexpr int kMixTypes = 4;
inline constexpr size_t mix_bytes(MixType type) {
  return type == MixType::kFloat64 ? 8 : type == MixType::kFloat32 ? 4 : 2;
}

/// A mixed value is other * rest + own * share. Both products and the sum are rounded to the elements' type, as torch
/// rounds them. Elements of less than four bytes are computed in float.
struct MixShares {
  double share = 1;
  double rest = 0;
};

/// Loops over `count` elements; the memory of both arguments must not overlap.
struct MixLoops {
  /// Mixes `values` with `others`.
  void (*with[kMixTypes])(void* values, const void* others, size_t count, const MixShares& shares);
  /// Mixes each of `a` and `b` with the other one.
  void (*pair[kMixTypes])(void* a, void* b, size_t count, const MixShares& shares);
};

extern const MixLoops kScalarMixing;
#if defined(__x86_64__) || defined(_M_X64)
extern const MixLoops kAvx2Mixing;  // also needs F16C
#endif
extern const MixLoops kNeonMixing;

}  // namespace headrace
