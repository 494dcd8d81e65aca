// The store for AVX-512: 64 bytes at a time through a table held in registers, instead of a gather for each element.
#if defined(__x86_64__) || defined(_M_X64)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns of its own header (PR 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "core/base/geometry.h"
#include "core/kernels/resize/kernel_sets.h"

namespace headrace {
namespace {

using Vec = __m512i;

constexpr int kBlock = 64;          // pixels that share a register of bytes
constexpr int kChunk = 4 * kBlock;  // pixels whose channels are separated before a channel's table is loaded

int least(int a, int b) { return a < b ? a : b; }
Vec load(const void* from) { return _mm512_loadu_si512(from); }

/// A table of 256 bytes in four registers; at() looks up 64 indices at once.
struct ByteLookup {
  Vec quarter[4];

  explicit ByteLookup(const uint8_t* from) {
    for (int i = 0; i < 4; ++i) quarter[i] = load(from + 64 * i);
  }
  Vec at(Vec index) const {
    const Vec low = _mm512_permutex2var_epi8(quarter[0], index, quarter[1]);
    const Vec high = _mm512_permutex2var_epi8(quarter[2], index, quarter[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
  }
};

/// The table of one channel. `look_up` takes 64 bytes in the order that channel_bytes gives them and returns
/// kBytes registers of elements in the order of the pixels.
template <int kBytes>
struct Table;

template <>
struct Table<1> {
  ByteLookup plane;
  explicit Table(const uint8_t* byte_tables) : plane(byte_tables) {}
  void look_up(Vec index, Vec* out) const { out[0] = plane.at(index); }
};

template <>
struct Table<2> {
  ByteLookup low, high;
  explicit Table(const uint8_t* byte_tables) : low(byte_tables), high(byte_tables + 256) {}
  void look_up(Vec index, Vec* out) const {
    const Vec a = low.at(index), b = high.at(index);
    out[0] = _mm512_unpacklo_epi8(a, b);
    out[1] = _mm512_unpackhi_epi8(a, b);
  }
};

template <>
struct Table<4> {
  ByteLookup byte0, byte1, byte2, byte3;
  explicit Table(const uint8_t* byte_tables)
      : byte0(byte_tables), byte1(byte_tables + 256), byte2(byte_tables + 512), byte3(byte_tables + 768) {}
  void look_up(Vec index, Vec* out) const {
    const Vec a = byte0.at(index), b = byte1.at(index), c = byte2.at(index), d = byte3.at(index);
    const Vec ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
    const Vec cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
    out[0] = _mm512_unpacklo_epi16(ab_low, cd_low);
    out[1] = _mm512_unpackhi_epi16(ab_low, cd_low);
    out[2] = _mm512_unpacklo_epi16(ab_high, cd_high);
    out[3] = _mm512_unpackhi_epi16(ab_high, cd_high);
  }
};

/// Loads output pixels [x, x + 64) of an RGBX row of `row_pixels` pixels: out[0..2] are R, G, B. Only the first `count`
/// exist, the others are 0; where the address is outside the row, the mask prevents the read. Byte b of dword d of lane
/// l is pixel 16 d + 4 l + b: the order in which per-lane shuffles separate RGBX pixels. Table<4> undoes it.
void channels_of_pixels(const uint8_t* row, int row_pixels, int x, int count, bool mirror, Vec* out) {
  const Vec backwards = _mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const Vec apart = _mm512_broadcast_i32x4(_mm_setr_epi32(0x0c080400, 0x0d090501, 0x0e0a0602, 0x0f0b0703));
  const uint8_t* at = row + ptrdiff_t(mirror ? row_pixels - x - 16 : x) * kPixelBytes;
  Vec part[4];
  for (int i = 0; i < 4; ++i, at += mirror ? -64 : 64) {
    const int n = count - 16 * i;
    const unsigned mask = n >= 16 ? 0xffff : n <= 0 ? 0 : mirror ? 0xffffu << (16 - n) : (1u << n) - 1;
    part[i] = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), at);
    if (mirror) part[i] = _mm512_permutexvar_epi32(backwards, part[i]);
    part[i] = _mm512_shuffle_epi8(part[i], apart);
  }
  const Vec rg01 = _mm512_unpacklo_epi32(part[0], part[1]), rg23 = _mm512_unpacklo_epi32(part[2], part[3]);
  const Vec bx01 = _mm512_unpackhi_epi32(part[0], part[1]), bx23 = _mm512_unpackhi_epi32(part[2], part[3]);
  out[0] = _mm512_unpacklo_epi64(rg01, rg23);
  out[1] = _mm512_unpackhi_epi64(rg01, rg23);
  out[2] = _mm512_unpacklo_epi64(bx01, bx23);
}

/// The same from planes.
void channels_of_planes(const uint8_t* row, int plane_stride, int row_pixels, int x, int count, bool mirror, Vec* out) {
  const Vec order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const Vec backwards = _mm512_setr_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const Vec swapped = _mm512_broadcast_i32x4(_mm_setr_epi32(0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f));
  const uint8_t* at = row + (mirror ? row_pixels - x - 64 : x);
  const __mmask64 mask = count >= 64 ? ~0ull : mirror ? ~0ull << (64 - count) : (1ull << count) - 1;
  for (int c = 0; c < 3; ++c, at += plane_stride) {
    out[c] = _mm512_maskz_loadu_epi8(mask, at);
    if (mirror) out[c] = _mm512_shuffle_epi8(out[c], swapped);
    out[c] = _mm512_permutexvar_epi32(mirror ? backwards : order, out[c]);
  }
}

/// The same from planes (`plane_stride` not 0) or RGBX, in the order that Table<kBytes> expects.
template <int kBytes>
void channel_bytes(const uint8_t* row, int plane_stride, int row_pixels, int x, int count, bool mirror, Vec* out) {
  if (plane_stride) {
    channels_of_planes(row, plane_stride, row_pixels, x, count, mirror, out);
  } else {
    channels_of_pixels(row, row_pixels, x, count, mirror, out);
  }
  if constexpr (kBytes < 4) {  // the narrower tables need other permutations of the dwords
    const Vec order = kBytes == 1 ? _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
                                  : _mm512_setr_epi32(0, 4, 2, 6, 8, 12, 10, 14, 1, 5, 3, 7, 9, 13, 11, 15);
    for (int c = 0; c < 3; ++c) out[c] = _mm512_permutexvar_epi32(order, out[c]);
  }
}

/// Writes the first `count` elements.
template <int kBytes>
void write(uint8_t* to, Vec elements, int count) {
  if (count >= 64 / kBytes) {
    _mm512_storeu_si512(to, elements);
    _mm_prefetch(reinterpret_cast<const char*>(to) + kPrefetchBytes, _MM_HINT_T1);
  } else if (count > 0) {
    _mm512_mask_storeu_epi8(to, (1ull << (count * kBytes)) - 1, elements);
  }
}

template <int kBytes>
void store_planar(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut,
                  const RowTarget& target) {
  for (int begin = 0; begin < pixels; begin += kChunk) {
    const int end = least(begin + kChunk, pixels);
    Vec bytes[kChunk / kBlock][3];
    for (int x = begin; x < end; x += kBlock) {
      channel_bytes<kBytes>(row, plane_stride, pixels, x, pixels - x, mirror, bytes[(x - begin) / kBlock]);
    }
    for (int c = 0; c < lut.channels; ++c) {
      const Table<kBytes> table(lut.planes + c * kBytes * 256);
      uint8_t* to = target.base + c * target.channel_stride + ptrdiff_t(begin) * kBytes;
      for (int x = begin; x < end; x += kBlock) {
        Vec out[kBytes];
        table.look_up(bytes[(x - begin) / kBlock][c], out);
        for (int i = 0; i < kBytes; ++i, to += 64) write<kBytes>(to, out[i], end - x - i * (64 / kBytes));
      }
    }
  }
}

/// The sources of the elements of three registers RGBRGB...: element e is channel e % 3 of pixel e / 3.
template <int kBytes>
struct Interleave {
  static constexpr int kElements = 64 / kBytes;
  alignas(64) uint8_t red_green[3][64];  // byte selectors for vpermt2b: 64 and above select green
  alignas(64) uint8_t blue[3][64];
  uint64_t is_blue[3];

  constexpr Interleave() : red_green{}, blue{}, is_blue{} {
    for (int i = 0; i < 3 * 64; ++i) {
      const int element = i / kBytes, pixel = element / 3, channel = element % 3;
      const auto byte = static_cast<uint8_t>(pixel * kBytes + i % kBytes);
      red_green[i / 64][i % 64] = static_cast<uint8_t>(channel == 1 ? 64 + byte : byte);
      blue[i / 64][i % 64] = byte;
      if (channel == 2) is_blue[i / 64] |= 1ull << (i % 64);
    }
  }
};

template <int kBytes>
void store_interleaved(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut,
                       const RowTarget& target) {
  static constexpr Interleave<kBytes> kOrder;
  constexpr int kElements = 64 / kBytes;
  uint8_t* to = target.base;
  for (int x = 0; x < pixels; x += kBlock) {
    Vec bytes[3], out[3][kBytes];
    channel_bytes<kBytes>(row, plane_stride, pixels, x, pixels - x, mirror, bytes);
    for (int c = 0; c < 3; ++c) Table<kBytes>(lut.planes + c * kBytes * 256).look_up(bytes[c], out[c]);
    for (int i = 0; i < kBytes; ++i) {
      for (int k = 0; k < 3; ++k, to += 64) {
        Vec mixed = _mm512_permutex2var_epi8(out[0][i], load(kOrder.red_green[k]), out[1][i]);
        mixed = _mm512_mask_permutexvar_epi8(mixed, kOrder.is_blue[k], load(kOrder.blue[k]), out[2][i]);
        write<kBytes>(to, mixed, 3 * (pixels - x) - (3 * i + k) * kElements);
      }
    }
  }
}

template <int kBytes>
void store_as(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut, const RowTarget& target) {
  if (target.pixel_stride == kBytes) return store_planar<kBytes>(row, plane_stride, pixels, mirror, lut, target);
  if (lut.channels == 3 && target.channel_stride == kBytes && target.pixel_stride == 3 * kBytes) {
    return store_interleaved<kBytes>(row, plane_stride, pixels, mirror, lut, target);
  }
  kScalarKernels.store(row, plane_stride, pixels, mirror, lut, target);  // strides of an unknown layout
}

}  // namespace

void store_avx512(const uint8_t* row, int plane_stride, int pixels, bool mirror, const Lut& lut,
                  const RowTarget& target) {
  if (lut.element_bytes == 4) {
    store_as<4>(row, plane_stride, pixels, mirror, lut, target);
  } else if (lut.element_bytes == 2) {
    store_as<2>(row, plane_stride, pixels, mirror, lut, target);
  } else {
    store_as<1>(row, plane_stride, pixels, mirror, lut, target);
  }
}

}  // namespace headrace
#endif
