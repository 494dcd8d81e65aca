// Finds and counts the FF bytes of entropy-coded data, which begin markers and stuffing: about 3 in a thousand bytes;
// and the markers among them, which are rare.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace headrace {

#if defined(__aarch64__)
/// Four bits of each byte, the lowest first: all set where it is FF.
inline uint64_t ff_nibbles(uint8x16_t bytes) {
  const uint16x8_t equal = vreinterpretq_u16_u8(vceqq_u8(bytes, vdupq_n_u8(0xFF)));
  return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(equal, 4)), 0);
}
#endif

/// The first FF in [p, end), or `end`.
inline const uint8_t* find_ff(const uint8_t* p, const uint8_t* end) {
#if defined(__SSE2__)
  // memchr does the same, but its call and setup cost more than the scan between two FFs.
  const __m128i ff = _mm_set1_epi8(-1);
  for (; end - p >= 64; p += 64) {
    const auto equal = [&](int at) {
      return _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at)), ff);
    };
    const __m128i a = equal(0), b = equal(16), c = equal(32), d = equal(48);
    if (_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d))) == 0) continue;
    const auto mask = [](__m128i m) { return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(m))); };
    return p + __builtin_ctzll(mask(a) | mask(b) << 16 | mask(c) << 32 | mask(d) << 48);
  }
#elif defined(__aarch64__)
  for (; end - p >= 64; p += 64) {
    const uint8x16_t a = vld1q_u8(p), b = vld1q_u8(p + 16), c = vld1q_u8(p + 32), d = vld1q_u8(p + 48);
    if (ff_nibbles(vmaxq_u8(vmaxq_u8(a, b), vmaxq_u8(c, d))) == 0) continue;
    const uint8_t* at = p;
    for (const uint8x16_t part : {a, b, c, d}) {
      if (const uint64_t mask = ff_nibbles(part); mask != 0) return at + __builtin_ctzll(mask) / 4;
      at += 16;
    }
  }
#endif
  const void* found = p == end ? nullptr : std::memchr(p, 0xFF, static_cast<size_t>(end - p));
  return found == nullptr ? end : static_cast<const uint8_t*>(found);
}

/// The first FF in [p, end) that no 00 follows, or `end`. The FF may be the last byte.
inline const uint8_t* find_marker(const uint8_t* p, const uint8_t* end) {
#if defined(__SSE2__)
  const __m128i ff = _mm_set1_epi8(-1), zero = _mm_setzero_si128();
  for (; end - p > 64; p += 64) {
    const auto load = [&](int at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at)); };
    const auto marker = [&](int at) {
      return _mm_andnot_si128(_mm_cmpeq_epi8(load(at + 1), zero), _mm_cmpeq_epi8(load(at), ff));
    };
    const __m128i any = _mm_or_si128(_mm_or_si128(marker(0), marker(16)), _mm_or_si128(marker(32), marker(48)));
    if (_mm_movemask_epi8(any) != 0) break;
  }
#elif defined(__aarch64__)
  for (; end - p > 64; p += 64) {
    const auto marker = [&](int at) {
      const uint8x16_t equal = vceqq_u8(vld1q_u8(p + at), vdupq_n_u8(0xFF));
      return vbicq_u8(equal, vceqzq_u8(vld1q_u8(p + at + 1)));
    };
    if (vmaxvq_u8(vorrq_u8(vorrq_u8(marker(0), marker(16)), vorrq_u8(marker(32), marker(48)))) != 0) break;
  }
#endif
  for (;; p += 2) {
    p = find_ff(p, end);
    if (end - p < 2 || p[1] != 0) return p;
  }
}

/// The number of FFs in [p, end).
inline size_t count_ff(const uint8_t* p, const uint8_t* end) {
  size_t count = 0;
#if defined(__SSE2__) || defined(__aarch64__)
  constexpr int kMost = 255;  // that a byte can count
#endif
#if defined(__SSE2__)
  const __m128i ff = _mm_set1_epi8(-1), zero = _mm_setzero_si128();
  while (end - p >= 16) {
    __m128i found = zero;
    for (int i = 0; i < kMost && end - p >= 16; ++i, p += 16)
      found = _mm_sub_epi8(found, _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), ff));
    const __m128i sums = _mm_sad_epu8(found, zero);
    count += static_cast<size_t>(_mm_cvtsi128_si32(sums)) + static_cast<size_t>(_mm_extract_epi16(sums, 4));
  }
#elif defined(__aarch64__)
  while (end - p >= 16) {
    uint8x16_t found = vdupq_n_u8(0);
    for (int i = 0; i < kMost && end - p >= 16; ++i, p += 16)
      found = vsubq_u8(found, vceqq_u8(vld1q_u8(p), vdupq_n_u8(0xFF)));
    count += vaddlvq_u8(found);
  }
#endif
  return count + static_cast<size_t>(std::count(p, end, uint8_t{0xFF}));
}

/// Bytes past *out that copy_until_ff may overwrite.
inline constexpr size_t kCopySlack = 16;

/// Copies bytes up to the first FF in [p, end), or all of them, and moves *out past them; returns where it stopped.
inline const uint8_t* copy_until_ff(const uint8_t* p, const uint8_t* end, uint8_t** out) {
  uint8_t* to = *out;
#if defined(__SSE2__)
  const __m128i ff = _mm_set1_epi8(-1);
  for (; end - p >= 16; p += 16, to += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, ff)));
    if (mask == 0) continue;
    const int before = __builtin_ctz(mask);
    *out = to + before;
    return p + before;
  }
#elif defined(__aarch64__)
  for (; end - p >= 16; p += 16, to += 16) {
    const uint8x16_t bytes = vld1q_u8(p);
    vst1q_u8(to, bytes);
    const uint64_t mask = ff_nibbles(bytes);
    if (mask == 0) continue;
    const int before = __builtin_ctzll(mask) / 4;
    *out = to + before;
    return p + before;
  }
#endif
  const uint8_t* const stop = find_ff(p, end);
  std::memcpy(to, p, static_cast<size_t>(stop - p));
  *out = to + (stop - p);
  return stop;
}

}  // namespace headrace
