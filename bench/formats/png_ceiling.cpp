// How fast a PNG could be decoded to RGB: libdeflate for all of the data at once, filters undone with SSE2 where pixels
// have three bytes. For measurements alone: files of 8 bits RGB or palette, or 16 bits gray, not interlaced; no checks
// of the chunks.
//
//     c++ -O2 -shared -fPIC png_ceiling.cpp -ldeflate
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

extern "C" {
// libdeflate.h, which not every machine has.
struct libdeflate_decompressor;
libdeflate_decompressor* libdeflate_alloc_decompressor(void);
int libdeflate_zlib_decompress(libdeflate_decompressor*, const void*, size_t, void*, size_t, size_t*);
}

namespace {

uint32_t u32(const uint8_t* p) { return uint32_t{p[0]} << 24 | p[1] << 16 | p[2] << 8 | p[3]; }

int paeth(int a, int b, int c) {
  const int pa = std::abs(b - c), pb = std::abs(a - c), pc = std::abs(a + b - 2 * c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

void unfilter(int kind, uint8_t* row, const uint8_t* above, size_t bytes, size_t step) {
  if (kind == 2)
    for (size_t i = 0; i < bytes; ++i) row[i] = static_cast<uint8_t>(row[i] + above[i]);
  if (kind != 1 && kind != 3 && kind != 4) return;
#if defined(__SSE2__)
  if (step == 3 && bytes >= 6) {
    const auto load = [](const uint8_t* p) {
      uint32_t v;
      std::memcpy(&v, p, sizeof v);  // a byte more than the pixel
      return _mm_cvtsi32_si128(static_cast<int>(v));
    };
    const __m128i zero = _mm_setzero_si128();
    __m128i a = zero, c = zero;  // words
    for (size_t i = 0; i < bytes; i += 3) {
      const __m128i b = _mm_unpacklo_epi8(load(above + i), zero), x = _mm_unpacklo_epi8(load(row + i), zero);
      __m128i guess;
      if (kind == 1) {
        guess = a;
      } else if (kind == 3) {
        guess = _mm_srli_epi16(_mm_add_epi16(a, b), 1);
      } else {
        const auto magnitude = [&](__m128i v) { return _mm_max_epi16(v, _mm_sub_epi16(zero, v)); };
        const __m128i va = _mm_sub_epi16(b, c), vb = _mm_sub_epi16(a, c);
        const __m128i pa = magnitude(va), pb = magnitude(vb), pc = magnitude(_mm_add_epi16(va, vb));
        const __m128i least = _mm_min_epi16(pc, _mm_min_epi16(pa, pb));
        const __m128i is_a = _mm_cmpeq_epi16(least, pa), is_b = _mm_cmpeq_epi16(least, pb);
        const __m128i bc = _mm_or_si128(_mm_and_si128(is_b, b), _mm_andnot_si128(is_b, c));
        guess = _mm_or_si128(_mm_and_si128(is_a, a), _mm_andnot_si128(is_a, bc));
      }
      a = _mm_and_si128(_mm_add_epi16(x, guess), _mm_set1_epi16(255));
      c = b;
      const uint32_t out = static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(a, a)));
      std::memcpy(row + i, &out, 3);
    }
    return;
  }
#endif
  for (size_t i = 0; i < bytes; ++i) {
    const int a = i < step ? 0 : row[i - step], b = above[i], c = i < step ? 0 : above[i - step];
    const int guess = kind == 1 ? a : kind == 3 ? (a + b) >> 1 : paeth(a, b, c);
    row[i] = static_cast<uint8_t>(row[i] + guess);
  }
}

}  // namespace

/// Writes width * height * 3 bytes. Returns 0; 1: damaged, 2: of another kind.
extern "C" int png_ceiling(const uint8_t* data, size_t size, uint8_t* out) {
  static thread_local libdeflate_decompressor* const inflater = libdeflate_alloc_decompressor();
  static thread_local std::vector<uint8_t> packed, rows;
  const size_t width = u32(data + 16), height = u32(data + 20);
  const int depth = data[24], colour = data[25];
  const size_t step = colour == 2 && depth == 8    ? 3
                      : colour == 3 && depth == 8  ? 1
                      : colour == 0 && depth == 16 ? 2
                                                   : 0;
  if (step == 0 || data[28] != 0) return 2;
  const uint8_t* palette = nullptr;
  packed.clear();
  for (size_t at = 8; at + 12 <= size;) {
    const size_t length = u32(data + at);
    if (length > size - at - 12) return 1;
    if (std::memcmp(data + at + 4, "IDAT", 4) == 0) packed.insert(packed.end(), data + at + 8, data + at + 8 + length);
    if (std::memcmp(data + at + 4, "PLTE", 4) == 0) palette = data + at + 8;
    at += 12 + length;
  }
  const size_t bytes = width * step;
  rows.resize((bytes + 1) * (height + 1) + 16);
  std::memset(rows.data(), 0, bytes + 1);
  uint8_t* const first = rows.data() + bytes + 1;
  if (libdeflate_zlib_decompress(inflater, packed.data(), packed.size(), first, (bytes + 1) * height, nullptr) != 0)
    return 1;
  for (size_t y = 0; y < height; ++y) {
    uint8_t* const row = first + y * (bytes + 1);
    unfilter(row[0], row + 1, row - bytes, bytes, step);
    if (colour == 2) {
      std::memcpy(out, row + 1, bytes);
      out += bytes;
    } else {
      for (size_t x = 0; x < width; ++x, out += 3) {
        if (colour == 3) {
          std::memcpy(out, palette + 3 * row[1 + x], 3);
        } else {  // Pillow clips 16 bits to 8
          const uint8_t value = row[1 + 2 * x] != 0 ? 255 : row[2 + 2 * x];
          out[0] = out[1] = out[2] = value;
        }
      }
    }
  }
  return 0;
}
