// The inner loops for AVX-512 with VBMI and VNNI (Ice Lake, Zen 4 and newer).
//
// Note [byte dot products]
// vpdpbusd adds four products of an unsigned and a signed byte to a 32-bit lane. A 22-bit weight is three signed
// digits, so four taps of a channel cost three of them, and the sum is put together by Horner's rule: with
// s = sum(pixel * digit2), then (s << 8) + sum(pixel * digit1), then (that << 8) + sum(pixel * digit0). All of it is
// exact modulo 2^32 and the true sum fits.
#if defined(__x86_64__) || defined(_M_X64)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns of its own header (PR 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "geometry.h"
#include "kernel_sets.h"

// No std:: here, nor anything else inline that the linker might pick for the whole program: this file's code runs on
// processors with AVX-512 only.
namespace headrace {
namespace {

using Vec = __m512i;

constexpr int kHalf = 1 << (kWeightBits - 1);
// Added before the two shifts by 8 of Horner's rule.
constexpr int kHalfEarly = kHalf >> 16;

int least(int a, int b) { return a < b ? a : b; }

template <class T>
Vec load(const T* from) {
  return _mm512_loadu_si512(from);
}
Vec lanes(int a, int b, int c, int d) { return _mm512_broadcast_i32x4(_mm_setr_epi32(a, b, c, d)); }
/// Lane l, byte b of the result: base of the lane + step * l.
Vec dwords(int base, int per_lane, int per_dword) {
  const Vec i = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const Vec lane = _mm512_srli_epi32(i, 2), within = _mm512_and_si512(i, _mm512_set1_epi32(3));
  return _mm512_add_epi32(_mm512_set1_epi32(base),
                          _mm512_add_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(per_lane)),
                                           _mm512_mullo_epi32(within, _mm512_set1_epi32(per_dword))));
}

/// Four RGBX pixels in a lane -> R of the four, G of the four, B, X.
Vec channels_apart() { return lanes(0x0c080400, 0x0d090501, 0x0e0a0602, 0x0f0b0703); }

Vec horner(Vec pixels, Vec digit0, Vec digit1, Vec digit2) {
  Vec sum = _mm512_dpbusd_epi32(_mm512_set1_epi32(kHalfEarly), pixels, digit2);
  sum = _mm512_dpbusd_epi32(_mm512_slli_epi32(sum, 8), pixels, digit1);
  return _mm512_dpbusd_epi32(_mm512_slli_epi32(sum, 8), pixels, digit0);
}

/// Four registers of sums -> bytes, lane by lane: those of a, of b, of c, of d.
Vec to_bytes(Vec a, Vec b, Vec c, Vec d) {
  const Vec ab = _mm512_packs_epi32(_mm512_srai_epi32(a, kWeightBits), _mm512_srai_epi32(b, kWeightBits));
  const Vec cd = _mm512_packs_epi32(_mm512_srai_epi32(c, kWeightBits), _mm512_srai_epi32(d, kWeightBits));
  return _mm512_packus_epi16(ab, cd);
}

/// Four outputs and up to four taps of each.
struct Quad {
  Vec digit0, digit1, digit2;  // dword d of lane i: the digits of output i
};

Quad load_quad(const int8_t* digits) {
  const Vec all = load(digits);
  return {_mm512_permutexvar_epi32(dwords(0, 3, 0), all), _mm512_permutexvar_epi32(dwords(1, 3, 0), all),
          _mm512_permutexvar_epi32(dwords(2, 3, 0), all)};
}

/// For vpermb: from 16 pixels, those of four windows that start within 12 pixels, channels apart.
Vec quad_shuffle(const int32_t* start) {
  const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(start));
  const __m128i bytes = _mm_slli_epi32(_mm_sub_epi32(first, _mm_broadcastd_epi32(first)), 2);
  const Vec spread = _mm512_permutexvar_epi32(dwords(0, 1, 0), _mm512_castsi128_si512(bytes));
  return _mm512_add_epi8(_mm512_shuffle_epi8(spread, _mm512_setzero_si512()), channels_apart());
}

// Windows of up to four taps: sixteen outputs at a time, their weights in registers while the rows go by.
void resample_x_short(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                      size_t dst_stride) {
  const Vec in_order = dwords(0, 1, 4);
  for (int x = 0; x < table.count; x += kTableBlock) {
    Quad quad[4];
    Vec shuffle[4];
    const uint8_t* from[4];
    for (int q = 0; q < 4; ++q) {
      quad[q] = load_quad(table.digits + size_t(x / 4 + q) * 48);
      shuffle[q] = quad_shuffle(table.start + x + 4 * q);
      from[q] = src + ptrdiff_t(table.start[x + 4 * q]) * kPixelBytes;
    }
    const __mmask16 wanted = static_cast<__mmask16>((1u << least(16, table.count - x)) - 1);
    uint8_t* to = dst + ptrdiff_t(x) * kPixelBytes;
    for (int y = 0; y < rows; ++y, to += dst_stride) {
      Vec sum[4];
      for (int q = 0; q < 4; ++q) {
        const Vec pixels = _mm512_permutexvar_epi8(shuffle[q], load(from[q] + size_t(y) * src_stride));
        sum[q] = horner(pixels, quad[q].digit0, quad[q].digit1, quad[q].digit2);
      }
      const Vec bytes = _mm512_permutexvar_epi32(in_order, to_bytes(sum[0], sum[1], sum[2], sum[3]));
      if (wanted == 0xffff) {
        _mm512_storeu_si512(to, bytes);
      } else {
        _mm512_mask_storeu_epi32(to, wanted, bytes);
      }
    }
  }
}

struct Sums {
  Vec s0, s1, s2;
};

void add(Sums& sums, Vec pixels, const Quad& quad) {
  sums.s0 = _mm512_dpbusd_epi32(sums.s0, pixels, quad.digit0);
  sums.s1 = _mm512_dpbusd_epi32(sums.s1, pixels, quad.digit1);
  sums.s2 = _mm512_dpbusd_epi32(sums.s2, pixels, quad.digit2);
}

Sums no_sums() { return {_mm512_set1_epi32(kHalf), _mm512_setzero_si512(), _mm512_setzero_si512()}; }

Vec total(const Sums& sums) {
  return _mm512_add_epi32(sums.s0, _mm512_slli_epi32(_mm512_add_epi32(sums.s1, _mm512_slli_epi32(sums.s2, 8)), 8));
}

const __m128i* at_pixel(const uint8_t* row, int x) {
  return reinterpret_cast<const __m128i*>(row + ptrdiff_t(x) * kPixelBytes);
}

// Any number of taps: four outputs at a time, in up to kRows rows at once so that a weight is loaded less often.
template <int kRows>
void resample_x_quad(const uint8_t* src, size_t src_stride, const TableView& table, int x, int groups, uint8_t* dst,
                     size_t dst_stride) {
  const int8_t* digits = table.digits + size_t(x / 4) * size_t(table.taps_stride / 4) * 48;
  const int32_t* start = table.start + x;
  const bool narrow = start[3] - start[0] <= 12;
  const Vec shuffle = quad_shuffle(start);
  // Where a window has fewer groups of taps than its neighbours, weights of zero meet some pixel or other of the row.
  const int last = table.start[table.count - 1] + table.taps[table.count - 1] - 1;
  Sums sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r] = no_sums();
  for (int g = 0; g < groups; ++g, digits += 48) {
    const Quad quad = load_quad(digits);
    const int x0 = least(start[0] + 4 * g, last), x1 = least(start[1] + 4 * g, last);
    const int x2 = least(start[2] + 4 * g, last), x3 = least(start[3] + 4 * g, last);
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* row = src + size_t(r) * src_stride;
      Vec pixels;
      if (narrow) {
        pixels = _mm512_permutexvar_epi8(shuffle, load(at_pixel(row, start[0] + 4 * g)));
      } else {
        pixels = _mm512_castsi128_si512(_mm_loadu_si128(at_pixel(row, x0)));
        pixels = _mm512_inserti32x4(pixels, _mm_loadu_si128(at_pixel(row, x1)), 1);
        pixels = _mm512_inserti32x4(pixels, _mm_loadu_si128(at_pixel(row, x2)), 2);
        pixels = _mm512_inserti32x4(pixels, _mm_loadu_si128(at_pixel(row, x3)), 3);
        pixels = _mm512_shuffle_epi8(pixels, channels_apart());
      }
      add(sums[r], pixels, quad);
    }
  }
  const __mmask16 wanted = static_cast<__mmask16>((1u << least(4, table.count - x)) - 1);
  for (int r = 0; r < kRows; ++r) {
    const Vec sum = _mm512_max_epi32(_mm512_srai_epi32(total(sums[r]), kWeightBits), _mm512_setzero_si512());
    _mm_mask_storeu_epi32(dst + size_t(r) * dst_stride + ptrdiff_t(x) * kPixelBytes, static_cast<__mmask8>(wanted),
                          _mm512_cvtusepi32_epi8(sum));
  }
}

void resample_x(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                size_t dst_stride) {
  if (table.taps_stride == 4 && table.quad_reach <= 12) {
    return resample_x_short(src, src_stride, rows, table, dst, dst_stride);
  }
  for (int x = 0; x < table.count; x += 4) {
    int taps = 1;
    for (int i = 0; i < 4; ++i) taps = table.taps[x + i] > taps ? table.taps[x + i] : taps;
    const int groups = (taps + 3) / 4;
    int y = 0;
    for (; y + 4 <= rows; y += 4) {
      resample_x_quad<4>(src + size_t(y) * src_stride, src_stride, table, x, groups, dst + size_t(y) * dst_stride,
                         dst_stride);
    }
    for (; y < rows; ++y) {
      resample_x_quad<1>(src + size_t(y) * src_stride, src_stride, table, x, groups, dst + size_t(y) * dst_stride,
                         dst_stride);
    }
  }
}

/// 64 bytes of each of four rows -> four registers of dwords that hold the four rows' byte of a column. to_bytes undoes
/// the order of columns, which both make lane by lane.
struct Columns {
  Vec c[4];
};

Columns columns(const uint8_t* row0, const uint8_t* row1, const uint8_t* row2, const uint8_t* row3) {
  const Vec a = load(row0), b = load(row1), c = load(row2), d = load(row3);
  const Vec ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
  const Vec cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
  return {{_mm512_unpacklo_epi16(ab_low, cd_low), _mm512_unpackhi_epi16(ab_low, cd_low),
           _mm512_unpacklo_epi16(ab_high, cd_high), _mm512_unpackhi_epi16(ab_high, cd_high)}};
}

Vec same_dword(const int8_t* digits) {
  int word;
  __builtin_memcpy(&word, digits, sizeof word);
  return _mm512_set1_epi32(word);
}

void resample_y(const uint8_t* src, size_t src_stride, const TableView& table, int index, int pixels, uint8_t* dst) {
  const int taps = table.taps[index], groups = (taps + 3) / 4;
  const int8_t* digits = table.digits + (size_t(index / 4) * size_t(table.taps_stride / 4) * 4 + index % 4) * 12;
  const int bytes = pixels * kPixelBytes;
  for (int x = 0; x < bytes; x += 64) {
    Vec sum[4];
    if (groups == 1) {
      const uint8_t* row = src + x;
      const Columns four = columns(row, row + size_t(least(1, taps - 1)) * src_stride,
                                   row + size_t(least(2, taps - 1)) * src_stride, row + size_t(taps - 1) * src_stride);
      const Vec digit0 = same_dword(digits), digit1 = same_dword(digits + 4), digit2 = same_dword(digits + 8);
      for (int i = 0; i < 4; ++i) sum[i] = horner(four.c[i], digit0, digit1, digit2);
    } else {
      Sums sums[4];
      for (int i = 0; i < 4; ++i) sums[i] = no_sums();
      for (int g = 0; g < groups; ++g) {
        const uint8_t* row[4];
        for (int i = 0; i < 4; ++i) row[i] = src + size_t(least(4 * g + i, taps - 1)) * src_stride + x;
        const Columns four = columns(row[0], row[1], row[2], row[3]);
        const int8_t* at = digits + size_t(g) * 48;
        const Quad quad{same_dword(at), same_dword(at + 4), same_dword(at + 8)};
        for (int i = 0; i < 4; ++i) add(sums[i], four.c[i], quad);
      }
      for (int i = 0; i < 4; ++i) sum[i] = total(sums[i]);
    }
    const Vec result = to_bytes(sum[0], sum[1], sum[2], sum[3]);
    if (bytes - x >= 64) {
      _mm512_storeu_si512(dst + x, result);
    } else {
      _mm512_mask_storeu_epi8(dst + x, (1ull << (bytes - x)) - 1, result);
    }
  }
}

}  // namespace

extern const Kernels kAvx512Kernels{"avx512", resample_x, resample_y, store_avx512};

}  // namespace headrace
#endif
