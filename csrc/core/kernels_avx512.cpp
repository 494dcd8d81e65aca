// The two resize passes for AVX-512 with VBMI and VNNI (Ice Lake, Zen 4 and newer).
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
constexpr int kDigitBytes = 64;               // one digit of four taps of a block of outputs
constexpr int kGroupBytes = 3 * kDigitBytes;  // all digits of these

int least(int a, int b) { return a < b ? a : b; }
int most(int a, int b) { return a > b ? a : b; }
Vec load(const void* from) { return _mm512_loadu_si512(from); }

/// The three digits of four taps.
struct Digits {
  Vec d0, d1, d2;
};

/// The weighted sum of the first, and mostly only, four taps.
Vec horner(Vec pixels, const Digits& digits) {
  Vec s0 = _mm512_dpbusd_epi32(_mm512_set1_epi32(kHalf), pixels, digits.d0);
  Vec s1 = _mm512_dpbusd_epi32(_mm512_setzero_si512(), pixels, digits.d1);
  Vec s2 = _mm512_dpbusd_epi32(_mm512_setzero_si512(), pixels, digits.d2);
  return _mm512_add_epi32(s0, _mm512_add_epi32(_mm512_slli_epi32(s1, 8), _mm512_slli_epi32(s2, 16)));
}

/// The same for any number of taps: one sum a digit until the end.
struct Sums {
  Vec s0 = _mm512_set1_epi32(kHalf), s1 = _mm512_setzero_si512(), s2 = _mm512_setzero_si512();

  void add(Vec pixels, const Digits& digits) {
    s0 = _mm512_dpbusd_epi32(s0, pixels, digits.d0);
    s1 = _mm512_dpbusd_epi32(s1, pixels, digits.d1);
    s2 = _mm512_dpbusd_epi32(s2, pixels, digits.d2);
  }
  Vec total() const {
    return _mm512_add_epi32(s0, _mm512_slli_epi32(_mm512_add_epi32(s1, _mm512_slli_epi32(s2, 8)), 8));
  }
};

/// Four registers of sums -> bytes, lane by lane: those of a, of b, of c, of d.
Vec to_bytes(Vec a, Vec b, Vec c, Vec d) {
  const Vec ab = _mm512_packs_epi32(_mm512_srai_epi32(a, kWeightBits), _mm512_srai_epi32(b, kWeightBits));
  const Vec cd = _mm512_packs_epi32(_mm512_srai_epi32(c, kWeightBits), _mm512_srai_epi32(d, kWeightBits));
  return _mm512_packus_epi16(ab, cd);
}

// ---- horizontal: a block of sixteen outputs fills a register a channel ----------------------------------------------

struct Rgb {
  Vec r, g, b;
};

Digits load_digits(const int8_t* from) { return {load(from), load(from + kDigitBytes), load(from + 2 * kDigitBytes)}; }

/// Windows that start within kNear pixels find four taps each in the 32 pixels that two loads bring.
constexpr int kNear = 28;

/// For vpermt2b: where the taps of sixteen outputs lie in those pixels, a channel each.
Rgb near_taps(const int32_t* start) {
  const Vec first = load(start);
  const Vec pixel = _mm512_sub_epi32(first, _mm512_broadcastd_epi32(_mm512_castsi512_si128(first)));
  const Vec red =
      _mm512_add_epi32(_mm512_mullo_epi32(pixel, _mm512_set1_epi32(0x04040404)), _mm512_set1_epi32(0x0c080400));
  const Vec one = _mm512_set1_epi8(1);
  const Vec green = _mm512_add_epi8(red, one);
  return {red, green, _mm512_add_epi8(green, one)};
}

/// Where the second load begins, `start` pixels into the row: at the first one's place if all of the second lies past
/// the row's end, and so perhaps past its slack.
int second_load(int start, int end) { return start + 16 <= end ? start + 16 : start; }

Rgb gather_near(const uint8_t* first_pixels, const uint8_t* second_pixels, const Rgb& taps) {
  Vec first = load(first_pixels), second = load(second_pixels);
  // Else GCC makes each of them three loads, of which nearly all cross a cache line.
  asm("" : "+v"(first), "+v"(second));
  return {_mm512_permutex2var_epi8(first, taps.r, second), _mm512_permutex2var_epi8(first, taps.g, second),
          _mm512_permutex2var_epi8(first, taps.b, second)};
}

/// Four taps each from sixteen places, `tap` after the windows' starts. Where a window has fewer taps than its
/// neighbours, weights of zero meet some pixel or other: none past the end of the row.
Rgb gather_far(const uint8_t* row, const int32_t* start, int tap, int end) {
  const Vec apart = _mm512_broadcast_i32x4(_mm_setr_epi32(0x0c080400, 0x0d090501, 0x0e0a0602, 0x0f0b0703));
  Vec four[4];  // lane l of four[j]: output 4 l + j, its R, G, B and X apart
  for (int j = 0; j < 4; ++j) {
    const auto at = [&](int lane) {
      const int x = least(start[4 * lane + j] + tap, end - 1);
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + ptrdiff_t(x) * kPixelBytes));
    };
    Vec v = _mm512_castsi128_si512(at(0));
    v = _mm512_inserti32x4(v, at(1), 1);
    v = _mm512_inserti32x4(v, at(2), 2);
    v = _mm512_inserti32x4(v, at(3), 3);
    four[j] = _mm512_shuffle_epi8(v, apart);
  }
  const Vec rg01 = _mm512_unpacklo_epi32(four[0], four[1]), rg23 = _mm512_unpacklo_epi32(four[2], four[3]);
  const Vec bx01 = _mm512_unpackhi_epi32(four[0], four[1]), bx23 = _mm512_unpackhi_epi32(four[2], four[3]);
  return {_mm512_unpacklo_epi64(rg01, rg23), _mm512_unpackhi_epi64(rg01, rg23), _mm512_unpacklo_epi64(bx01, bx23)};
}

/// Writes the outputs of a block, all or `count` of them. Planes have room for all.
void write_planes(const Rgb& sum, int plane_stride, uint8_t* to) {
  const auto put = [&](int c, Vec v) {
    const Vec whole = _mm512_max_epi32(_mm512_srai_epi32(v, kWeightBits), _mm512_setzero_si512());
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + ptrdiff_t(c) * plane_stride), _mm512_cvtusepi32_epi8(whole));
  };
  put(0, sum.r);
  put(1, sum.g);
  put(2, sum.b);
}

void write_pixels(const Rgb& sum, int count, uint8_t* to) {
  const Vec together = _mm512_broadcast_i32x4(_mm_setr_epi32(0x0c080400, 0x0d090501, 0x0e0a0602, 0x0f0b0703));
  const Vec pixels = _mm512_shuffle_epi8(to_bytes(sum.r, sum.g, sum.b, sum.b), together);
  _mm512_mask_storeu_epi32(to, static_cast<__mmask16>((1u << least(count, 16)) - 1), pixels);
}

/// One block of outputs in some rows. `src` is where the rows start, `dst` where the block's outputs go.
struct Block {
  const uint8_t* src;
  size_t src_stride;
  int rows;
  uint8_t* dst;
  size_t dst_stride;
  int plane_stride, count;

  template <class SumsOfRow>
  void each_row(SumsOfRow sums) const {
    const auto [row, row_stride, end, to, to_stride, planes, pixels] = *this;  // registers: a store might alias *this
    if (planes) {
      for (int y = 0; y < end; ++y) write_planes(sums(row + y * row_stride), planes, to + y * to_stride);
    } else {
      for (int y = 0; y < end; ++y) write_pixels(sums(row + y * row_stride), pixels, to + y * to_stride);
    }
  }
};

void resample_block(const Block& block, const int32_t* start, int taps, int end, bool near, const int8_t* digits) {
  const Rgb where = near_taps(start);
  if (near && taps <= 4) {
    const Digits four = load_digits(digits);
    const ptrdiff_t first = ptrdiff_t(start[0]) * kPixelBytes;
    const ptrdiff_t second = ptrdiff_t(second_load(start[0], end)) * kPixelBytes;
    return block.each_row([=](const uint8_t* row) -> Rgb {
      const Rgb pixels = gather_near(row + first, row + second, where);
      return {horner(pixels.r, four), horner(pixels.g, four), horner(pixels.b, four)};
    });
  }
  block.each_row([=](const uint8_t* row) -> Rgb {
    Sums r, g, b;
    for (int tap = 0; tap < taps; tap += 4) {
      const int first = start[0] + tap;
      const Rgb pixels = near ? gather_near(row + ptrdiff_t(first) * kPixelBytes,
                                            row + ptrdiff_t(second_load(first, end)) * kPixelBytes, where)
                              : gather_far(row, start, tap, end);
      const Digits four = load_digits(digits + ptrdiff_t(tap / 4) * kGroupBytes);
      r.add(pixels.r, four);
      g.add(pixels.g, four);
      b.add(pixels.b, four);
    }
    return {r.total(), g.total(), b.total()};
  });
}

void resample_x(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                size_t dst_stride, int plane_stride) {
  const int end = table.start[table.count - 1] + table.taps[table.count - 1];
  const int8_t* digits = table.digits;
  for (int x = 0; x < table.count; x += kTableBlock, digits += table.taps_stride / 4 * kGroupBytes) {
    int taps = table.taps_stride;
    if (taps > 4) {  // those of this block: the row ends before taps that none of its windows has
      taps = table.taps[x];
      for (int i = 1; i < kTableBlock; ++i) taps = most(taps, table.taps[x + i]);
    }
    uint8_t* to = dst + ptrdiff_t(x) * (plane_stride ? 1 : kPixelBytes);
    resample_block({src, src_stride, rows, to, dst_stride, plane_stride, table.count - x}, table.start + x, taps, end,
                   table.block_reach <= kNear, digits);
  }
}

// ---- vertical: 64 bytes of the row at a time, whatever they are
// ------------------------------------------------------

/// Four registers of dwords, each the bytes of a column in four rows. to_bytes undoes their order, which is lane by
/// lane.
struct Columns {
  Vec c[4];

  Columns(const uint8_t* row0, const uint8_t* row1, const uint8_t* row2, const uint8_t* row3) {
    const Vec r0 = load(row0), r1 = load(row1), r2 = load(row2), r3 = load(row3);
    const Vec low01 = _mm512_unpacklo_epi8(r0, r1), high01 = _mm512_unpackhi_epi8(r0, r1);
    const Vec low23 = _mm512_unpacklo_epi8(r2, r3), high23 = _mm512_unpackhi_epi8(r2, r3);
    c[0] = _mm512_unpacklo_epi16(low01, low23);
    c[1] = _mm512_unpackhi_epi16(low01, low23);
    c[2] = _mm512_unpacklo_epi16(high01, high23);
    c[3] = _mm512_unpackhi_epi16(high01, high23);
  }
};

Vec same_dword(const int8_t* digits) {
  int word;
  __builtin_memcpy(&word, digits, sizeof word);
  return _mm512_set1_epi32(word);
}

void resample_y(const uint8_t* src, size_t src_stride, const TableView& table, int index, int bytes, uint8_t* dst) {
  const int taps = table.taps[index];
  const int8_t* digits =
      table.digits + ptrdiff_t(index / kTableBlock) * (table.taps_stride / 4) * kGroupBytes + index % kTableBlock * 4;
  const auto digits_of = [&](int tap) -> Digits {
    const int8_t* at = digits + ptrdiff_t(tap / 4) * kGroupBytes;
    return {same_dword(at), same_dword(at + kDigitBytes), same_dword(at + 2 * kDigitBytes)};
  };
  const auto row = [&](int tap) { return src + size_t(least(tap, taps - 1)) * src_stride; };
  for (int x = 0; x < bytes; x += 64) {
    Vec sum[4];
    if (taps <= 4) {
      const Columns four(row(0) + x, row(1) + x, row(2) + x, row(3) + x);
      for (int i = 0; i < 4; ++i) sum[i] = horner(four.c[i], digits_of(0));
    } else {
      Sums sums[4];
      for (int tap = 0; tap < taps; tap += 4) {
        const Columns four(row(tap) + x, row(tap + 1) + x, row(tap + 2) + x, row(tap + 3) + x);
        for (int i = 0; i < 4; ++i) sums[i].add(four.c[i], digits_of(tap));
      }
      for (int i = 0; i < 4; ++i) sum[i] = sums[i].total();
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

extern const Kernels kAvx512Kernels{"avx512", true, resample_x, resample_y, store_avx512};

}  // namespace headrace
#endif
