// Finds the FF bytes of entropy-coded data, which begin markers and stuffing: about 3 in a thousand bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headrace {

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
#endif
  const void* found = p == end ? nullptr : std::memchr(p, 0xFF, static_cast<size_t>(end - p));
  return found == nullptr ? end : static_cast<const uint8_t*>(found);
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
#endif
  const uint8_t* const stop = find_ff(p, end);
  std::memcpy(to, p, static_cast<size_t>(stop - p));
  *out = to + (stop - p);
  return stop;
}

}  // namespace headrace
