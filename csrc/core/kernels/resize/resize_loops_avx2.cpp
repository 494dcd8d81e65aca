// The inner loops for AVX2.
//
// Note [word dot products]
// vpmaddwd multiplies signed 16-bit words and adds pairs of products to 32-bit lanes. A byte is one word, a 22-bit
// weight two: weight = (high << 16) + low with low signed. Both sums are exact modulo 2^32, and the true total fits.
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#include "core/base/geometry.h"
#include "core/kernels/resize/kernel_sets.h"

// No std:: and no other inline functions here: the linker might pick this file's copies for the whole program, and they
// run only on processors with AVX2.
namespace headrace {
namespace {

using Vec = __m256i;

int least(int a, int b) { return a < b ? a : b; }
int most(int a, int b) { return a > b ? a : b; }

Vec two(const void* low, const void* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(low))),
                                 _mm_loadu_si128(static_cast<const __m128i*>(high)), 1);
}
Vec in_lanes(int a, int b, int c, int d) { return _mm256_setr_epi32(a, b, c, d, a, b, c, d); }

/// Sums of the products with the low and the high halves of the weights.
struct Sums {
  Vec low, high;
};

/// (high << 16) + low, rounded to an integer.
Vec total(const Sums& sums) {
  const Vec half = _mm256_set1_epi32(1 << (kWeightBits - 1));
  const Vec sum = _mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(sums.high, 16), half), sums.low);
  return _mm256_srai_epi32(sum, kWeightBits);
}

/// The weights of four taps of two outputs, one output per lane: pairs of taps, each pair four times.
struct Pair {
  Vec low01, low23, high01, high23;
};

Pair load_pair(const int32_t* a, const int32_t* b) {
  const Vec weight = two(a, b);
  const Vec up = _mm256_add_epi32(weight, _mm256_set1_epi32(0x8000));  // a negative low half borrows from the high one
  const auto words = [](Vec from, int bytes) {
    return _mm256_shuffle_epi8(from, in_lanes(bytes, bytes, bytes, bytes));
  };
  return {words(weight, 0x05040100), words(weight, 0x0d0c0908), words(up, 0x07060302), words(up, 0x0f0e0b0a)};
}

/// Adds four taps of two outputs, or the first two with kTwo; `pixels` holds four RGBX pixels of each.
template <bool kTwo = false>
void add(Sums& sums, Vec pixels, const Pair& weights) {
  const int none = static_cast<int>(0x80008000u);  // selector 0x80 gives zero, which widens bytes to words
  const Vec taps01 =
      _mm256_shuffle_epi8(pixels, in_lanes((none & ~0x00ff00ff) | 0x00040000, (none & ~0x00ff00ff) | 0x00050001,
                                           (none & ~0x00ff00ff) | 0x00060002, (none & ~0x00ff00ff) | 0x00070003));
  if constexpr (kTwo) {
    sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(taps01, weights.low01));
    sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(taps01, weights.high01));
    return;
  }
  const Vec taps23 =
      _mm256_shuffle_epi8(pixels, in_lanes((none & ~0x00ff00ff) | 0x000c0008, (none & ~0x00ff00ff) | 0x000d0009,
                                           (none & ~0x00ff00ff) | 0x000e000a, (none & ~0x00ff00ff) | 0x000f000b));
  sums.low = _mm256_add_epi32(
      sums.low, _mm256_add_epi32(_mm256_madd_epi16(taps01, weights.low01), _mm256_madd_epi16(taps23, weights.low23)));
  sums.high = _mm256_add_epi32(sums.high, _mm256_add_epi32(_mm256_madd_epi16(taps01, weights.high01),
                                                           _mm256_madd_epi16(taps23, weights.high23)));
}

/// Stores the first `count` of four outputs, given as the pairs (0, 2) and (1, 3).
void store_four_pixels(Vec pair02, Vec pair13, int count, uint8_t* to) {
  const Vec words = _mm256_packs_epi32(pair02, pair13);
  const Vec bytes = _mm256_packus_epi16(words, words);
  const __m128i four = _mm_unpacklo_epi64(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
  if (count >= 4) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), four);
  } else {
    int pixel[4];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(pixel), four);
    __builtin_memcpy(to, pixel, size_t(count) * kPixelBytes);
  }
}

/// Stores the first `count` of outputs 0 and 1, one per lane.
void store_two_pixels(Vec pair, int count, uint8_t* to) {
  const Vec words = _mm256_packs_epi32(pair, pair);
  const Vec bytes = _mm256_packus_epi16(words, words);
  const int first = _mm256_extract_epi32(bytes, 0), second = _mm256_extract_epi32(bytes, 4);
  __builtin_memcpy(to, &first, kPixelBytes);
  if (count >= 2) __builtin_memcpy(to + kPixelBytes, &second, kPixelBytes);
}

/// The last pixel of a row in any window. A window with fewer taps than its neighbours multiplies arbitrary pixels by
/// weights of zero: it reads none after this one except in the row's slack.
int last_tap(const TableView& table) { return table.start[table.count - 1] + table.taps[table.count - 1] - 1; }

/// Whether no window has more than two taps, as in an enlargement by the bilinear filter.
bool all_windows_have_two(const TableView& table) {
  Vec longer = _mm256_setzero_si256();
  for (int x = 0; x < table.count; x += 8) {  // the table is padded with copies of the last window
    const Vec taps = _mm256_loadu_si256(reinterpret_cast<const Vec*>(table.taps + x));
    longer = _mm256_or_si256(longer, _mm256_cmpgt_epi32(taps, _mm256_set1_epi32(2)));
  }
  return _mm256_testz_si256(longer, longer) != 0;
}

// Windows of up to 4 * kGroups taps, or 2 with kTwo: four outputs at a time, whose weights are prepared once for all
// rows.
template <int kGroups, bool kTwo = false>
void resample_x_few(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                    size_t dst_stride) {
  const int last = last_tap(table);
  for (int x = 0; x < table.count; x += 4) {
    Pair w02[kGroups], w13[kGroups];
    const uint8_t* from[kGroups][4];
    for (int g = 0; g < kGroups; ++g) {
      const int32_t* weight = table.weight + size_t(x) * size_t(table.taps_stride) + 4 * g;
      w02[g] = load_pair(weight, weight + 2 * table.taps_stride);
      w13[g] = load_pair(weight + table.taps_stride, weight + 3 * table.taps_stride);
      for (int i = 0; i < 4; ++i) from[g][i] = src + ptrdiff_t(least(table.start[x + i] + 4 * g, last)) * kPixelBytes;
    }
    for (int y = 0; y < rows; ++y) {
      const size_t row = size_t(y) * src_stride;
      Sums s02{_mm256_setzero_si256(), _mm256_setzero_si256()}, s13 = s02;
      for (int g = 0; g < kGroups; ++g) {
        add<kTwo>(s02, two(from[g][0] + row, from[g][2] + row), w02[g]);
        add<kTwo>(s13, two(from[g][1] + row, from[g][3] + row), w13[g]);
      }
      store_four_pixels(total(s02), total(s13), table.count - x,
                        dst + size_t(y) * dst_stride + ptrdiff_t(x) * kPixelBytes);
    }
  }
}

/// Any number of taps: two outputs in kRows rows, which share the prepared weights.
template <int kRows>
void resample_x_pair(const uint8_t* src, size_t src_stride, const TableView& table, int x, uint8_t* dst,
                     size_t dst_stride) {
  const int last = last_tap(table);
  const int taps = most(table.taps[x], table.taps[x + 1]);
  const int32_t* weight = table.weight + size_t(x) * size_t(table.taps_stride);
  Sums sums[kRows];
  for (Sums& s : sums) s = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (int t = 0; t < taps; t += 4) {
    const Pair four = load_pair(weight + t, weight + table.taps_stride + t);
    const uint8_t* a = src + ptrdiff_t(least(table.start[x] + t, last)) * kPixelBytes;
    const uint8_t* b = src + ptrdiff_t(least(table.start[x + 1] + t, last)) * kPixelBytes;
    for (int r = 0; r < kRows; ++r) add(sums[r], two(a + size_t(r) * src_stride, b + size_t(r) * src_stride), four);
  }
  for (int r = 0; r < kRows; ++r) {
    store_two_pixels(total(sums[r]), table.count - x, dst + size_t(r) * dst_stride + ptrdiff_t(x) * kPixelBytes);
  }
}

void resample_x(const uint8_t* src, size_t src_stride, int rows, const TableView& table, uint8_t* dst,
                size_t dst_stride, int plane_stride) {
  if (plane_stride) return kScalarKernels.resample_x(src, src_stride, rows, table, dst, dst_stride, plane_stride);
  if (table.taps_stride == 4 && all_windows_have_two(table)) {
    return resample_x_few<1, true>(src, src_stride, rows, table, dst, dst_stride);
  }
  if (table.taps_stride == 4) return resample_x_few<1>(src, src_stride, rows, table, dst, dst_stride);
  if (table.taps_stride == 8) return resample_x_few<2>(src, src_stride, rows, table, dst, dst_stride);
  for (; rows > 0; src += 4 * src_stride, dst += 4 * dst_stride, rows -= 4) {
    if (rows >= 4) {
      for (int x = 0; x < table.count; x += 2) resample_x_pair<4>(src, src_stride, table, x, dst, dst_stride);
    } else {
      for (int y = 0; y < rows; ++y) {
        const size_t from = size_t(y) * src_stride, to = size_t(y) * dst_stride;
        for (int x = 0; x < table.count; x += 2) resample_x_pair<1>(src + from, 0, table, x, dst + to, 0);
      }
    }
  }
}

/// The weights of two taps in every dword.
struct TwoTaps {
  Vec low, high;
};

TwoTaps load_two_taps(const int32_t* weight) {
  const auto words = [](int first, int second) {
    return _mm256_set1_epi32((first & 0xffff) | static_cast<int>(static_cast<unsigned>(second) << 16));
  };
  return {words(weight[0], weight[1]), words((weight[0] + 0x8000) >> 16, (weight[1] + 0x8000) >> 16)};
}

/// 2 * kPairs taps, or any number of them if kPairs is 0.
template <int kPairs>
void resample_columns(const uint8_t* src, size_t src_stride, int taps, const int32_t* weight, int bytes, uint8_t* dst) {
  const Vec zero = _mm256_setzero_si256();
  TwoTaps few[kPairs + 1];
  for (int i = 0; i < kPairs; ++i) few[i] = load_two_taps(weight + 2 * i);
  for (int x = 0; x < bytes; x += 32) {
    Sums sums[4];
    for (Sums& s : sums) s = {zero, zero};
    const auto add_two = [&](int tap, const TwoTaps& weights) {
      const auto row = [&](int t) {  // past the window: its last row, with weight zero
        return _mm256_loadu_si256(reinterpret_cast<const Vec*>(src + size_t(least(t, taps - 1)) * src_stride + x));
      };
      const Vec row0 = row(tap), row1 = row(tap + 1);
      // Pairs of words, lane by lane; the packing at the end undoes this order.
      const Vec first = _mm256_unpacklo_epi8(row0, row1), second = _mm256_unpackhi_epi8(row0, row1);
      const Vec pixels[4] = {_mm256_unpacklo_epi8(first, zero), _mm256_unpackhi_epi8(first, zero),
                             _mm256_unpacklo_epi8(second, zero), _mm256_unpackhi_epi8(second, zero)};
      for (int i = 0; i < 4; ++i) {
        sums[i].low = _mm256_add_epi32(sums[i].low, _mm256_madd_epi16(pixels[i], weights.low));
        sums[i].high = _mm256_add_epi32(sums[i].high, _mm256_madd_epi16(pixels[i], weights.high));
      }
    };
    if constexpr (kPairs > 0) {
      for (int i = 0; i < kPairs; ++i) add_two(2 * i, few[i]);
    } else {
      for (int tap = 0; tap < taps; tap += 2) add_two(tap, load_two_taps(weight + tap));
    }
    const Vec words0 = _mm256_packs_epi32(total(sums[0]), total(sums[1]));
    const Vec words1 = _mm256_packs_epi32(total(sums[2]), total(sums[3]));
    const Vec result = _mm256_packus_epi16(words0, words1);
    if (bytes - x >= 32) {
      _mm256_storeu_si256(reinterpret_cast<Vec*>(dst + x), result);
    } else {
      alignas(32) uint8_t tail[32];
      _mm256_store_si256(reinterpret_cast<Vec*>(tail), result);
      __builtin_memcpy(dst + x, tail, size_t(bytes - x));
    }
  }
}

void resample_y(const uint8_t* src, size_t src_stride, const TableView& table, int index, int bytes, uint8_t* dst) {
  const int taps = table.taps[index];
  const int32_t* weight = table.weight + size_t(index) * size_t(table.taps_stride);
  if (taps <= 2) {
    resample_columns<1>(src, src_stride, taps, weight, bytes, dst);
  } else if (taps <= 4) {
    resample_columns<2>(src, src_stride, taps, weight, bytes, dst);
  } else {
    resample_columns<0>(src, src_stride, taps, weight, bytes, dst);
  }
}

// Note [look-ups]
// A gather is no faster than eight loads (Zen 5, a sample of 224 x 224: 58 us, this loop 36 us). Byte shuffles are
// slower than both: each byte of an element needs sixteen shuffles and sixteen selections.

/// Stores three channels; kStep elements from pixel to pixel.
template <class Element, int kStep>
void store_three(const uint8_t* row, int pixels, bool mirror, const Lut& lut, const RowTarget& target) {
  const auto* entries = static_cast<const Element*>(lut.entries);
  auto* r = reinterpret_cast<Element*>(target.base);
  auto* g = reinterpret_cast<Element*>(target.base + target.channel_stride);
  auto* b = reinterpret_cast<Element*>(target.base + 2 * target.channel_stride);
  const ptrdiff_t step = mirror ? -1 : 1;
  const uint8_t* from = row + (mirror ? ptrdiff_t(pixels - 1) * kPixelBytes : 0);
  const auto put = [&](int i) {
    const uint8_t* pixel = from + i * step * kPixelBytes;
    r[i * kStep] = entries[pixel[0]];
    g[i * kStep] = entries[256 + pixel[1]];
    b[i * kStep] = entries[512 + pixel[2]];
  };
  constexpr int kUnroll = 16;
  int x = 0;
  for (; x + kUnroll <= pixels; x += kUnroll) {
    for (int i = 0; i < kUnroll; ++i) put(i);
    _mm_prefetch(reinterpret_cast<const char*>(r) + kPrefetchBytes, _MM_HINT_T1);
    if (kStep == 1) {
      _mm_prefetch(reinterpret_cast<const char*>(g) + kPrefetchBytes, _MM_HINT_T1);
      _mm_prefetch(reinterpret_cast<const char*>(b) + kPrefetchBytes, _MM_HINT_T1);
    }
    r += kUnroll * kStep;
    g += kUnroll * kStep;
    b += kUnroll * kStep;
    from += kUnroll * step * kPixelBytes;
  }
  for (int i = 0; i < pixels - x; ++i) put(i);
}

template <class Element>
void store_as(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut, const RowTarget& target) {
  constexpr int kBytes = sizeof(Element);
  if (lut.channels == 3 && !plane_stride && target.pixel_stride == kBytes) {
    store_three<Element, 1>(row, pixels, mirror, lut, target);
  } else if (lut.channels == 3 && !plane_stride && target.pixel_stride == 3 * kBytes) {
    store_three<Element, 3>(row, pixels, mirror, lut, target);
  } else {
    kScalarKernels.store(row, plane_stride, pixels, mirror, lut, target);
  }
}

void store(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut, const RowTarget& target) {
  if (lut.normalisation != nullptr && !plane_stride) {
    const int done = store_normalised_avx2(row, pixels, mirror, *lut.normalisation, target);
    RowTarget rest = target;
    rest.base += done * target.pixel_stride;
    const uint8_t* from = row + (mirror ? 0 : ptrdiff_t(done) * kPixelBytes);
    if (done < pixels) store_as<uint32_t>(from, 0, pixels - done, mirror, lut, rest);
  } else if (lut.element_bytes == 4) {
    store_as<uint32_t>(row, plane_stride, pixels, mirror, lut, target);
  } else if (lut.element_bytes == 2) {
    store_as<uint16_t>(row, plane_stride, pixels, mirror, lut, target);
  } else {
    store_as<uint8_t>(row, plane_stride, pixels, mirror, lut, target);
  }
}

}  // namespace

const Kernels kAvx2Kernels{"avx2",       false,         rgb_to_rgbx_avx2,  resample_x,    resample_y,
                           store,        &kAvx2Effects, make_texture_avx2, run_warp_avx2, run_tensor_warp_avx2,
                           &kAvx2Mixing, &kAvx2Floats,  &kAvx2Opencv,      &kAvx2Blocks};

}  // namespace headrace
#endif
