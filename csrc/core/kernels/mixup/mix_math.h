// Arithmetic of one mixed value, with the roundings of torch. No branches: compilers vectorise it, except for float16.
// The file of each instruction set includes this header; all definitions are internal to that file.
#pragma once

#include <cstdint>
#include <cstring>

namespace headrace {
namespace {

struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

inline float as_float(uint32_t bits) {
  float made = 0;
  std::memcpy(&made, &bits, sizeof(made));
  return made;
}

inline uint32_t as_bits(float value) {
  uint32_t made = 0;
  std::memcpy(&made, &value, sizeof(made));
  return made;
}

inline double widened(double value) { return value; }
inline float widened(float value) { return value; }
inline float widened(Bfloat16 value) { return as_float(static_cast<uint32_t>(value.bits) << 16); }

inline float widened(Float16 value) {
  const uint32_t rest = value.bits & 0x7FFFU;
  const uint32_t normal = (rest << 13) + (112U << 23);     // the exponent's bias is 127, not 15
  const uint32_t endless = (rest << 13) + (224U << 23);    // infinity, NaN
  const float tiny = static_cast<float>(rest) * 0x1p-24F;  // exact
  const uint32_t bits = rest >= 0x7C00U ? endless : rest < 0x0400U ? as_bits(tiny) : normal;
  return as_float(bits | (value.bits & 0x8000U) << 16);
}

inline void narrow(double value, double& to) { to = value; }
inline void narrow(float value, float& to) { to = value; }

inline void narrow(float value, Bfloat16& to) {
  const uint32_t bits = as_bits(value);
  const uint32_t rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;  // to nearest, ties to even
  to.bits = static_cast<uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? 0x7FC0U : rounded);
}

inline void narrow(float value, Float16& to) {
  const uint32_t all = as_bits(value), bits = all & 0x7FFFFFFFU;
  // The same rounding at bit 13, with the exponent's bias changed; for 65520 and above the sum carries into infinity.
  const uint32_t normal = (bits - (112U << 23) + 0x0FFFU + (bits >> 13 & 1U)) >> 13;
  // Below 2^-14: the sum's last bit is 2^-24, so the addition rounds, and its low bits are the result.
  const uint32_t tiny = as_bits(as_float(bits) + 0.5F) - as_bits(0.5F);
  const uint32_t finite = bits < (113U << 23) ? tiny : normal;
  const uint32_t endless = bits > 0x7F800000U ? 0x7E00U : 0x7C00U;
  to.bits = static_cast<uint16_t>((bits >= (143U << 23) ? endless : finite) | (all >> 16 & 0x8000U));
}

template <class T>
inline T product(T value, decltype(widened(T{})) factor) {
  T made;
  narrow(widened(value) * factor, made);
  return made;
}

/// The value of T that other * rest + own * share gives. -ffp-contract=off keeps the roundings separate.
template <class T>
inline T mixed(T own, T other, decltype(widened(T{})) share, decltype(widened(T{})) rest) {
  T made;
  narrow(widened(product(other, rest)) + widened(product(own, share)), made);
  return made;
}

template <class T>
void mix_with(void* values, const void* others, size_t count, const MixShares& shares) {
  using Wide = decltype(widened(T{}));
  const auto share = static_cast<Wide>(shares.share), rest = static_cast<Wide>(shares.rest);
  T* __restrict own = static_cast<T*>(values);
  const T* __restrict other = static_cast<const T*>(others);
  for (size_t i = 0; i < count; ++i) own[i] = mixed(own[i], other[i], share, rest);
}

template <class T>
void mix_pair(void* a, void* b, size_t count, const MixShares& shares) {
  using Wide = decltype(widened(T{}));
  const auto share = static_cast<Wide>(shares.share), rest = static_cast<Wide>(shares.rest);
  T* __restrict first = static_cast<T*>(a);
  T* __restrict second = static_cast<T*>(b);
  for (size_t i = 0; i < count; ++i) {
    const T own = first[i], other = second[i];
    first[i] = mixed(own, other, share, rest);
    second[i] = mixed(other, own, share, rest);
  }
}

}  // namespace
}  // namespace headrace
