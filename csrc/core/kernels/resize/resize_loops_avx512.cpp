// The two resize passes for AVX-512 with VBMI and VNNI (Ice Lake, Zen 4 and newer).
//
// Note [byte dot products]
// vpdpbusd adds four products of an unsigned and a signed byte to a 32-bit lane. A 22-bit weight is three signed
// digits, so four taps of a channel need three instructions. Horner's rule combines the sums: s = sum(pixel * digit2),
// s = (s << 8) + sum(pixel * digit1), s = (s << 8) + sum(pixel * digit0). All steps are exact modulo 2^32, and the true
// sum fits.
#if defined(__x86_64__) || defined(_M_X64)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns of its own header (PR 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "core/base/geometry.h"
#include "core/kernels/resize/kernel_sets.h"

// No std:: and no other inline functions here: the linker might pick this file's copies for the whole program, and they
// run only on processors with AVX-512.
namespace headrace {
namespace {

using Vec = __m512i;

constexpr int kHalf = 1 << (kWeightBits - 1);
constexpr int kDigitBytes = 64;               // one digit of four taps of a block of outputs
constexpr int kGroupBytes = 3 * kDigitBytes;  // all digits of these taps

int least(int a, int b) { return a < b ? a : b; }
int most(int a, int b) { return a > b ? a : b; }
Vec load(const void* from) { return _mm512_loadu_si512(from); }

/// The three digits of four taps.
struct Digits {
  Vec d0, d1, d2;
};

/// The weighted sum of 4 * kGroups taps.
template <int kGroups>
Vec horner(const Vec* pixels, const Digits* digits) {
  Vec sum = _mm512_set1_epi32(kHalf >> 16);
  for (int g = 0; g < kGroups; ++g) sum = _mm512_dpbusd_epi32(sum, pixels[g], digits[g].d2);
  sum = _mm512_slli_epi32(sum, 8);
  for (int g = 0; g < kGroups; ++g) sum = _mm512_dpbusd_epi32(sum, pixels[g], digits[g].d1);
  sum = _mm512_slli_epi32(sum, 8);
  for (int g = 0; g < kGroups; ++g) sum = _mm512_dpbusd_epi32(sum, pixels[g], digits[g].d0);
  return sum;
}

/// The same for any number of taps: one sum per digit, combined at the end.
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

/// Four registers of sums -> bytes. Each lane has those of a, then of b, c and d.
Vec to_bytes(Vec a, Vec b, Vec c, Vec d) {
  const Vec ab = _mm512_packs_epi32(_mm512_srai_epi32(a, kWeightBits), _mm512_srai_epi32(b, kWeightBits));
  const Vec cd = _mm512_packs_epi32(_mm512_srai_epi32(c, kWeightBits), _mm512_srai_epi32(d, kWeightBits));
  return _mm512_packus_epi16(ab, cd);
}

// ---- horizontal: a block of sixteen outputs fills one register per channel ------------------------------------------

struct Rgb {
  Vec r, g, b;
};

Digits load_digits(const int8_t* from) { return {load(from), load(from + kDigitBytes), load(from + 2 * kDigitBytes)}; }

/// Selectors for vpermt2b: the first four taps of sixteen outputs in 32 pixels, one register per channel.
Rgb near_taps(const uint32_t* near) {
  const Vec red = load(near), one = _mm512_set1_epi8(1), green = _mm512_add_epi8(red, one);
  return {red, green, _mm512_add_epi8(green, one)};
}

/// The same where outputs 0 to 7 and 8 to 15 have 32 pixels each.
Rgb half_taps(const int32_t* start) {
  const Vec all = load(start);
  const Vec base = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8), all);
  const Vec bytes = _mm512_mullo_epi32(_mm512_sub_epi32(all, base), _mm512_set1_epi32(0x04040404));
  const Vec red = _mm512_add_epi32(bytes, _mm512_set1_epi32(0x0c080400)), one = _mm512_set1_epi8(1);
  const Vec green = _mm512_add_epi8(red, one);
  return {red, green, _mm512_add_epi8(green, one)};
}

/// Prevents GCC from reloading for each use: nearly all of these loads cross a cache line.
Vec load_once(const uint8_t* from) {
  Vec v = load(from);
  asm("" : "+v"(v));
  return v;
}

/// Gathers from 32 pixels of a row, or twice from 16 if the row ends before the others, which may be past its slack.
[[gnu::always_inline]] inline Rgb gather_near(const uint8_t* row, int start, int end, const Rgb& taps) {
  const uint8_t* at = row + ptrdiff_t(start) * kPixelBytes;
  const Vec first = load_once(at), second = load_once(start + 16 <= end ? at + 64 : at);
  return {_mm512_permutex2var_epi8(first, taps.r, second), _mm512_permutex2var_epi8(first, taps.g, second),
          _mm512_permutex2var_epi8(first, taps.b, second)};
}

[[gnu::always_inline]] inline Rgb gather_halves(const uint8_t* row, int start, int start8, int end, const Rgb& taps) {
  const Rgb low = gather_near(row, start, end, taps);
  const Rgb high = gather_near(row, start8 < end ? start8 : start, end, taps);
  return {_mm512_mask_blend_epi32(0xff00, low.r, high.r), _mm512_mask_blend_epi32(0xff00, low.g, high.g),
          _mm512_mask_blend_epi32(0xff00, low.b, high.b)};
}

/// Four registers with the taps of one output per lane, R, G, B and X apart -> one register per channel. Lane l of
/// four[j] becomes output 4 l + j.
Rgb by_channel(const Vec* four) {
  const Vec rg01 = _mm512_unpacklo_epi32(four[0], four[1]), rg23 = _mm512_unpacklo_epi32(four[2], four[3]);
  const Vec bx01 = _mm512_unpackhi_epi32(four[0], four[1]), bx23 = _mm512_unpackhi_epi32(four[2], four[3]);
  return {_mm512_unpacklo_epi64(rg01, rg23), _mm512_unpackhi_epi64(rg01, rg23), _mm512_unpacklo_epi64(bx01, bx23)};
}

Vec channels_apart() { return _mm512_broadcast_i32x4(_mm_setr_epi32(0x0c080400, 0x0d090501, 0x0e0a0602, 0x0f0b0703)); }

/// Selectors for vpermt2b: the taps of four outputs in their 32 pixels, one output per lane.
Vec quarter_taps(const int32_t* start) {
  const Vec lane = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(start));
  const __m128i bytes = _mm_mullo_epi32(_mm_sub_epi32(four, _mm_broadcastd_epi32(four)), _mm_set1_epi32(0x04040404));
  return _mm512_add_epi8(_mm512_permutexvar_epi32(lane, _mm512_castsi128_si512(bytes)), channels_apart());
}

// In the next two functions a window with fewer taps than its neighbours multiplies arbitrary pixels by weights of
// zero: it reads none past the row and its slack.

/// `taps`: quarter_taps of outputs 0 to 3, 4 to 7, ...
[[gnu::always_inline]] inline Rgb gather_quarters(const uint8_t* row, const int32_t* start, int tap, int end,
                                                  const Vec* taps) {
  Vec four[4];
  for (int q = 0; q < 4; ++q) {
    const int x = least(start[4 * q] + tap, end - 1);
    const uint8_t* at = row + ptrdiff_t(x) * kPixelBytes;
    four[q] = _mm512_permutex2var_epi8(load(at), taps[q], load(x + 16 <= end ? at + 64 : at));
  }
  const Rgb mixed = by_channel(four);  // here lane l of four[q] is output 4 q + l
  const Vec order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return {_mm512_permutexvar_epi32(order, mixed.r), _mm512_permutexvar_epi32(order, mixed.g),
          _mm512_permutexvar_epi32(order, mixed.b)};
}

/// Gathers from sixteen arbitrary positions.
[[gnu::always_inline]] inline Rgb gather_far(const uint8_t* row, const int32_t* start, int tap, int end) {
  Vec four[4];
  for (int j = 0; j < 4; ++j) {
    const auto at = [&](int lane) {
      const int x = least(start[4 * lane + j] + tap, end - 1);
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + ptrdiff_t(x) * kPixelBytes));
    };
    Vec v = _mm512_castsi128_si512(at(0));
    v = _mm512_inserti32x4(v, at(1), 1);
    v = _mm512_inserti32x4(v, at(2), 2);
    v = _mm512_inserti32x4(v, at(3), 3);
    four[j] = _mm512_shuffle_epi8(v, channels_apart());
  }
  return by_channel(four);
}

/// Shifts, clamps and stores the sums of a block of sixteen outputs: all of them to three planes, which have room, or
/// (`plane_stride` 0) the first `count` as RGBX, where X is arbitrary.
void store_sixteen_outputs(const Rgb& sum, int count, int plane_stride, uint8_t* to) {
  if (plane_stride) {
    const auto put = [&](int c, Vec v) {
      const Vec whole = _mm512_max_epi32(_mm512_srai_epi32(v, kWeightBits), _mm512_setzero_si512());
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + ptrdiff_t(c) * plane_stride), _mm512_cvtusepi32_epi8(whole));
    };
    put(0, sum.r);
    put(1, sum.g);
    put(2, sum.b);
  } else {
    // Four R, four G, ... -> four pixels is the same permutation as the other way round.
    const Vec pixels = _mm512_shuffle_epi8(to_bytes(sum.r, sum.g, sum.b, sum.b), channels_apart());
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>((1u << least(count, 16)) - 1), pixels);
  }
}

/// The number of parts into which a block is split so that windows of a part start within kNearReach; kFar: more than
/// four.
enum class Reach { kNear, kHalves, kQuarters, kFar };

/// Sixteen neighbouring outputs of a row.
struct OutputBlock {
  const int32_t* start;
  const uint32_t* near;
  const int8_t* digits;
  int taps;   // of the longest window
  int end;    // of the rows, in pixels
  int count;  // outputs that exist
};

/// The rows of one horizontal pass: where they are read, and where written.
struct RowSpan {
  const uint8_t* src;
  size_t src_stride;
  int count;
  uint8_t* dst;
  size_t dst_stride;
  int plane_stride;
};

/// The outputs of one block in all rows, from 4 * kGroups taps, or any number of them if kGroups is 0.
template <Reach kReach, int kGroups>
void resample_x_block(const OutputBlock& block, const RowSpan& rows, uint8_t* to) {
  const int32_t* start = block.start;
  const int8_t* digits = block.digits;
  const int first = start[0], middle = start[8], end = block.end, taps = block.taps, count = block.count;
  const Rgb where = kReach == Reach::kHalves ? half_taps(start) : near_taps(block.near);
  Vec quarters[4];
  if constexpr (kReach == Reach::kQuarters) {
    for (int q = 0; q < 4; ++q) quarters[q] = quarter_taps(start + 4 * q);
  }
  const auto gather = [&](const uint8_t* row, int tap) {
    if constexpr (kReach == Reach::kNear) return gather_near(row, first + tap, end, where);
    if constexpr (kReach == Reach::kHalves) return gather_halves(row, first + tap, middle + tap, end, where);
    if constexpr (kReach == Reach::kQuarters) return gather_quarters(row, start, tap, end, quarters);
    if constexpr (kReach == Reach::kFar) return gather_far(row, start, tap, end);
  };
  const auto digits_of = [&](int group) { return load_digits(digits + ptrdiff_t(group) * kGroupBytes); };
  Digits few[kGroups + 1];
  for (int g = 0; g < kGroups; ++g) few[g] = digits_of(g);
  // Copies, since the compiler must assume that the bytes written alias `rows`.
  const uint8_t* row = rows.src;
  const size_t src_stride = rows.src_stride, dst_stride = rows.dst_stride;
  const int height = rows.count, plane_stride = rows.plane_stride;
#pragma GCC unroll 1  // unrolled it is slower by a third (Zen 5)
  for (int y = 0; y < height; ++y, row += src_stride, to += dst_stride) {
    Rgb sum;
    if constexpr (kGroups > 0) {
      Vec r[kGroups], g[kGroups], b[kGroups];
      for (int i = 0; i < kGroups; ++i) {
        const Rgb pixels = gather(row, 4 * i);
        r[i] = pixels.r;
        g[i] = pixels.g;
        b[i] = pixels.b;
      }
      sum = {horner<kGroups>(r, few), horner<kGroups>(g, few), horner<kGroups>(b, few)};
    } else {
      Sums r, g, b;
      for (int tap = 0; tap < taps; tap += 4) {
        const Rgb pixels = gather(row, tap);
        const Digits four = digits_of(tap / 4);
        r.add(pixels.r, four);
        g.add(pixels.g, four);
        b.add(pixels.b, four);
      }
      sum = {r.total(), g.total(), b.total()};
    }
    store_sixteen_outputs(sum, count, plane_stride, to);
  }
}

template <Reach kReach>
void resample_x_block(const OutputBlock& block, const RowSpan& rows, uint8_t* to) {
  if (block.taps <= 4) {
    resample_x_block<kReach, 1>(block, rows, to);
  } else if (block.taps <= 8) {
    resample_x_block<kReach, 2>(block, rows, to);
  } else {
    resample_x_block<kReach, 0>(block, rows, to);
  }
}

void resample_x(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                size_t dst_stride, int plane_stride) {
  const RowSpan all{src, src_stride, rows, dst, dst_stride, plane_stride};
  OutputBlock block{table.start, table.near, table.digits, 0, 0, table.count};
  block.end = table.start[table.count - 1] + table.taps[table.count - 1];
  for (int x = 0; x < table.count; x += kTableBlock) {
    block.taps = table.taps_stride;
    if (block.taps > 4) {  // the row may end before taps that only other blocks have
      block.taps = table.taps[x];
      for (int i = 1; i < kTableBlock; ++i) block.taps = most(block.taps, table.taps[x + i]);
    }
    const int32_t* start = block.start;
    const auto near = [&](int first, int last) { return start[last] - start[first] <= kNearReach; };
    if (near(0, 15)) {
      resample_x_block<Reach::kNear>(block, all, dst);
    } else if (near(0, 7) && near(8, 15)) {
      resample_x_block<Reach::kHalves>(block, all, dst);
    } else if (near(0, 3) && near(4, 7) && near(8, 11) && near(12, 15)) {
      resample_x_block<Reach::kQuarters>(block, all, dst);
    } else {
      resample_x_block<Reach::kFar>(block, all, dst);
    }
    block.start += kTableBlock;
    block.near += kTableBlock;
    block.digits += table.taps_stride * (kGroupBytes / 4);
    block.count -= kTableBlock;
    dst += kTableBlock * (plane_stride ? 1 : kPixelBytes);
  }
}

// ---- vertical: 64 bytes of the row at a time, in any format ---------------------------------------------------------

/// Four registers of dwords, each with a column's bytes from four rows, in a per-lane order that to_bytes undoes.
struct FourRows {
  Vec c[4];

  FourRows(const uint8_t* row0, const uint8_t* row1, const uint8_t* row2, const uint8_t* row3) {
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

template <int kGroups>
void resample_columns(const uint8_t* src, size_t src_stride, int taps, const int8_t* digits, int bytes, uint8_t* dst) {
  const auto digits_of = [&](int group) -> Digits {
    const int8_t* at = digits + ptrdiff_t(group) * kGroupBytes;
    return {same_dword(at), same_dword(at + kDigitBytes), same_dword(at + 2 * kDigitBytes)};
  };
  const auto columns = [&](int tap, int x) -> FourRows {  // past the window: its last row, with weight zero
    const auto row = [&](int t) { return src + size_t(least(t, taps - 1)) * src_stride + x; };
    return {row(tap), row(tap + 1), row(tap + 2), row(tap + 3)};
  };
  Digits few[kGroups + 1];
  for (int g = 0; g < kGroups; ++g) few[g] = digits_of(g);
  for (int x = 0; x < bytes; x += 64) {
    Vec sum[4];
    if constexpr (kGroups > 0) {
      Vec pixels[4][kGroups];
      for (int g = 0; g < kGroups; ++g) {
        const FourRows four = columns(4 * g, x);
        for (int i = 0; i < 4; ++i) pixels[i][g] = four.c[i];
      }
      for (int i = 0; i < 4; ++i) sum[i] = horner<kGroups>(pixels[i], few);
    } else {
      Sums sums[4];
      for (int tap = 0; tap < taps; tap += 4) {
        const FourRows four = columns(tap, x);
        const Digits next = digits_of(tap / 4);
        for (int i = 0; i < 4; ++i) sums[i].add(four.c[i], next);
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

void resample_y(const uint8_t* src, size_t src_stride, const TableView& table, int index, int bytes, uint8_t* dst) {
  const int taps = table.taps[index];
  const int8_t* digits =
      table.digits + ptrdiff_t(index / kTableBlock) * table.taps_stride * (kGroupBytes / 4) + index % kTableBlock * 4;
  if (taps <= 4) {
    resample_columns<1>(src, src_stride, taps, digits, bytes, dst);
  } else if (taps <= 8) {
    resample_columns<2>(src, src_stride, taps, digits, bytes, dst);
  } else {
    resample_columns<0>(src, src_stride, taps, digits, bytes, dst);
  }
}

}  // namespace

const Kernels kAvx512Kernels{"avx512",         true,
                             rgb_to_rgbx_avx2, resample_x,
                             resample_y,       store_avx512,
                             &kAvx512Effects,  make_texture_avx512,
                             run_warp_avx512,  run_tensor_warp_avx512,
                             &kAvx2Mixing,     &kAvx512Floats,
                             &kAvx2Opencv,     &kAvx512Blocks};

}  // namespace headrace
#endif
