// The inverse DCT on a GPU: from coefficients to samples of planes, 32 blocks in a block of threads. The same source
// runs on a GPU and, thread by thread, on the host.
//
// Values are kept in 16 bits and saturate as in libjpeg-turbo's vector code: see Note [16-bit inverse] in
// core/jpeg/idct/block_loops_scalar.cpp, whose pass() is this one in 32-bit arithmetic that wraps.
#pragma once

#include "core/jpeg/idct/islow.h"
#include "jpeg_job.h"

namespace headrace {

inline constexpr int kInvertThreads = 256, kInvertBlocks = 32;
inline constexpr int kBlockPitch = 66;  // coefficients; 33 words, so that neighbours are in other banks

struct InvertMemory {
  int16_t value[kInvertBlocks * kBlockPitch];   // coefficients
  int16_t middle[kInvertBlocks * kBlockPitch];  // after the pass over columns
  uint16_t quant[64];                           // in natural order
  uint8_t natural[64];
};

/// The natural position of a coefficient.
HEADRACE_HD inline int natural_of(int zigzag) {
  // Numbers of the diagonal's first coefficient; the second half mirrors the first.
  const bool mirrored = zigzag >= 36;
  const int at = mirrored ? 63 - zigzag : zigzag;
  int diagonal = 0;
  while ((diagonal + 1) * (diagonal + 2) / 2 <= at) ++diagonal;
  const int along = at - diagonal * (diagonal + 1) / 2;
  const int row = (diagonal & 1) != 0 ? along : diagonal - along, place = row * 8 + diagonal - row;
  return mirrored ? 63 - place : place;
}

HEADRACE_HD inline int wrapped_16(uint32_t value) { return static_cast<int16_t>(value); }

HEADRACE_HD inline int clamped_to(int value, int least, int most) {
  value = value < least ? least : value;
  return value > most ? most : value;
}

/// One pass over eight values, in place.
HEADRACE_HD inline void invert_pass(int (&v)[8], int shift, int least, int most) {
  const auto times = [](int value, int factor) { return static_cast<uint32_t>(value) * static_cast<uint32_t>(factor); };
  const uint32_t half = 1u << (shift - 1);
  const uint32_t sum = (static_cast<uint32_t>(wrapped_16(static_cast<uint32_t>(v[0] + v[4]))) << kIslowBits) + half;
  const uint32_t difference =
      (static_cast<uint32_t>(wrapped_16(static_cast<uint32_t>(v[0] - v[4]))) << kIslowBits) + half;
  const uint32_t even2 = times(v[2], kF0541) + times(v[6], kF0541 - kF1847);
  const uint32_t even3 = times(v[2], kF0541 + kF0765) + times(v[6], kF0541);
  const uint32_t even[4] = {sum + even3, difference + even2, difference - even2, sum - even3};
  const int a = wrapped_16(static_cast<uint32_t>(v[7] + v[3])), b = wrapped_16(static_cast<uint32_t>(v[5] + v[1]));
  const uint32_t c = times(a, kF1175 - kF1961) + times(b, kF1175), d = times(a, kF1175) + times(b, kF1175 - kF0390);
  const uint32_t odd[4] = {
      times(v[7], -kF0899) + times(v[1], kF1501 - kF0899) + d,
      times(v[5], -kF2562) + times(v[3], kF3072 - kF2562) + c,
      times(v[5], kF2053 - kF2562) + times(v[3], -kF2562) + d,
      times(v[7], kF0298 - kF0899) + times(v[1], -kF0899) + c,
  };
  HEADRACE_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    v[i] = clamped_to(static_cast<int>(even[i] + odd[i]) >> shift, least, most);
    v[7 - i] = clamped_to(static_cast<int>(even[i] - odd[i]) >> shift, least, most);
  }
}

/// Whether only the first row of a block holds coefficients; libjpeg-turbo shifts these where the pass saturates.
HEADRACE_HD inline bool is_flat(const int16_t* block) {
  bool flat = true;
  HEADRACE_UNROLL(1)
  for (int i = 8; i < 64; ++i) flat = flat && block[i] == 0;
  return flat;
}

/// Inverts blocks [kInvertBlocks * piece, + kInvertBlocks) of a component, and leaves zeros in place of their
/// coefficients.
template <class Threads>
HEADRACE_HD void invert_block_of(Threads& threads, InvertMemory& block, const JpegJob& image, const PlaneJob& plane,
                                 int piece) {
  const int first = piece * kInvertBlocks;
  if (first >= plane.blocks) return;
  threads.each([&](int thread) {
    if (thread < 64) {
      const int to = natural_of(thread);
      block.natural[thread] = static_cast<uint8_t>(to);
      block.quant[to] = plane.quant[thread];
    }
  });
  struct alignas(16) Eight {
    int16_t value[8];
  };
  // A block's number in the component becomes its line and its column.
  const auto line_of = [&](int number) {
    return static_cast<int>(static_cast<uint32_t>(number) / static_cast<uint32_t>(plane.width));
  };
  threads.each([&](int thread) {
    const int own = thread >> 3, part = thread & 7, number = first + own;
    if (number >= plane.blocks) return;
    const int line = line_of(number), column = number - line * plane.width;
    const int mcu_row = static_cast<int>(static_cast<uint32_t>(line) / plane.v), y = line - mcu_row * plane.v;
    const int mcu = static_cast<int>(static_cast<uint32_t>(column) / plane.h), x = column - mcu * plane.h;
    const int64_t at =
        (static_cast<int64_t>(mcu_row) * image.columns + mcu) * image.mcu_blocks + plane.first + y * plane.h + x;
    Eight* from = reinterpret_cast<Eight*>(image.coefficients + at * 64) + part;
    const Eight eight = *from;
    *from = Eight{};
    int16_t* to = block.value + own * kBlockPitch;
    HEADRACE_UNROLL(8)
    for (int i = 0; i < 8; ++i) to[block.natural[part * 8 + i]] = eight.value[i];
  });
  threads.each([&](int thread) {
    const int own = thread >> 3, x = thread & 7;
    if (first + own >= plane.blocks) return;
    const int16_t* values = block.value + own * kBlockPitch;
    int v[8];
    HEADRACE_UNROLL(8)
    for (int y = 0; y < 8; ++y)
      v[y] = wrapped_16(static_cast<uint32_t>(values[y * 8 + x]) * static_cast<uint32_t>(block.quant[y * 8 + x]));
    const int first_row = v[0];
    const bool large = first_row < -8192 || first_row > 8191;
    const bool shifts = large && is_flat(values);
    invert_pass(v, kColumnsShift, -32768, 32767);
    int16_t* to = block.middle + own * kBlockPitch + x;
    HEADRACE_UNROLL(8)
    for (int y = 0; y < 8; ++y)
      to[y * 8] = static_cast<int16_t>(shifts ? wrapped_16(static_cast<uint32_t>(first_row) * 4) : v[y]);
  });
  threads.each([&](int thread) {
    const int row = thread >> 5, own = thread & 31, number = first + own;
    if (number >= plane.blocks) return;
    const int16_t* values = block.middle + own * kBlockPitch + row * 8;
    int v[8];
    HEADRACE_UNROLL(8)
    for (int x = 0; x < 8; ++x) v[x] = values[x];
    invert_pass(v, kRowsShift, -128, 127);
    const int line = line_of(number), column = number - line * plane.width;
    struct alignas(8) Samples {
      uint8_t value[8];
    } samples;
    HEADRACE_UNROLL(8)
    for (int x = 0; x < 8; ++x) samples.value[x] = static_cast<uint8_t>(v[x] + 128);
    uint8_t* to = plane.samples + (static_cast<int64_t>(line) * 8 + row) * plane.stride + column * 8;
    *reinterpret_cast<Samples*>(to) = samples;
  });
}

}  // namespace headrace
