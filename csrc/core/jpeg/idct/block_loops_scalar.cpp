// The loops from coefficients to pixels in plain C++: the reference for the vectors.
//
// Note [16-bit inverse]: libjpeg-turbo's inverse DCT keeps values in 16 bits where its C version has 32: dequantised
// coefficients and four sums wrap. The results of each pass saturate on x86; on Arm those of the first pass wrap, and
// the 32-bit sums are rounded without wrapping a second time.
// Coefficients that an encoder makes never come near these limits, but a file may contain any, and Pillow shows what
// these instructions make of them.
#include <algorithm>

#include "core/base/pixel_math.h"
#include "core/jpeg/idct/block_loops.h"
#include "core/jpeg/idct/islow.h"

namespace headrace {
namespace {

#if defined(__aarch64__)
constexpr bool kOfArm = true;
#else
constexpr bool kOfArm = false;
#endif

int16_t wrapped(int value) { return static_cast<int16_t>(value); }

/// One pass over eight values: 32-bit sums that wrap, rounded, shifted, saturated to 16 bits.
void pass(const int16_t (&in)[8], int shift, int16_t (&out)[8]) {
  constexpr int64_t kOne = 1 << kIslowBits;
  const int64_t sum = wrapped(in[0] + in[4]) * kOne, difference = wrapped(in[0] - in[4]) * kOne;
  const int64_t even2 = in[2] * kF0541 + in[6] * (kF0541 - kF1847), even3 = in[2] * (kF0541 + kF0765) + in[6] * kF0541;
  const int64_t even[4] = {sum + even3, difference + even2, difference - even2, sum - even3};

  const int64_t a = wrapped(in[7] + in[3]), b = wrapped(in[5] + in[1]);
  const int64_t c = a * (kF1175 - kF1961) + b * kF1175, d = a * kF1175 + b * (kF1175 - kF0390);
  const int64_t odd[4] = {
      in[7] * -kF0899 + in[1] * (kF1501 - kF0899) + d,
      in[5] * -kF2562 + in[3] * (kF3072 - kF2562) + c,
      in[5] * (kF2053 - kF2562) + in[3] * -kF2562 + d,
      in[7] * (kF0298 - kF0899) + in[1] * -kF0899 + c,
  };
  const auto finish = [shift](int64_t value) {
    const int64_t half = int64_t{1} << (shift - 1);
    if (kOfArm) return wrapped(static_cast<int>((static_cast<int32_t>(value) + half) >> shift));
    const int rounded = static_cast<int32_t>(value + half) >> shift;
    return static_cast<int16_t>(std::clamp(rounded, -32768, 32767));
  };
  for (int i = 0; i < 4; ++i) {
    out[i] = finish(even[i] + odd[i]);
    out[7 - i] = finish(even[i] - odd[i]);
  }
}

void invert_block(const int16_t* block, const uint16_t* quant, uint8_t* samples, size_t stride) {
  const bool flat = std::all_of(block + kBlockEdge, block + kBlockValues, [](int16_t value) { return value == 0; });
  int16_t middle[kBlockEdge][kBlockEdge];  // [row][column]
  for (int x = 0; x < kBlockEdge; ++x) {
    int16_t in[8], out[8];
    for (int y = 0; y < kBlockEdge; ++y) in[y] = wrapped(block[y * kBlockEdge + x] * quant[y * kBlockEdge + x]);
    pass(in, kColumnsShift, out);
    // Without the lower rows libjpeg-turbo shifts, which wraps where the pass saturates.
    for (int y = 0; y < kBlockEdge; ++y) middle[y][x] = flat ? wrapped(in[0] * 4) : out[y];
  }
  for (int y = 0; y < kBlockEdge; ++y) {
    int16_t out[8];
    pass(middle[y], kRowsShift, out);
    for (int x = 0; x < kBlockEdge; ++x)
      samples[static_cast<size_t>(y) * stride + static_cast<size_t>(x)] =
          static_cast<uint8_t>(std::clamp<int>(out[x], -128, 127) + 128);
  }
}

void upsample_h2v1(const uint8_t* row, int count, uint8_t* to) {
  for (int i = 0; i < count; ++i) {
    to[2 * i] = static_cast<uint8_t>((3 * row[i] + row[i - 1] + 1) >> 2);
    to[2 * i + 1] = static_cast<uint8_t>((3 * row[i] + row[i + 1] + 2) >> 2);
  }
}

void upsample_h2v2(const uint8_t* near, const uint8_t* far, int count, uint8_t* to) {
  const auto column = [near, far](int i) { return 3 * near[i] + far[i]; };
  for (int i = 0; i < count; ++i) {
    to[2 * i] = static_cast<uint8_t>((3 * column(i) + column(i - 1) + 8) >> 4);
    to[2 * i + 1] = static_cast<uint8_t>((3 * column(i) + column(i + 1) + 7) >> 4);
  }
}

void upsample_h1v2(const uint8_t* near, const uint8_t* far, int rounding, int count, uint8_t* to) {
  for (int i = 0; i < count; ++i) to[i] = static_cast<uint8_t>((3 * near[i] + far[i] + rounding) >> 2);
}

void put(uint8_t* pixel, int r, int g, int b) {
  pixel[0] = static_cast<uint8_t>(clamp_to_byte(r));
  pixel[1] = static_cast<uint8_t>(clamp_to_byte(g));
  pixel[2] = static_cast<uint8_t>(clamp_to_byte(b));
  pixel[3] = 255;
}

void colour(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int count, uint8_t* pixels) {
  for (int i = 0; i < count; ++i, pixels += 4) {
    const int u = cb[i] - 128, v = cr[i] - 128;
    put(pixels, y[i] + ((91881 * v + 32768) >> 16), y[i] + ((-22554 * u - 46802 * v + 32768) >> 16),
        y[i] + ((116130 * u + 32768) >> 16));
  }
}

void gray(const uint8_t* y, int count, uint8_t* pixels) {
  for (int i = 0; i < count; ++i, pixels += 4) put(pixels, y[i], y[i], y[i]);
}

}  // namespace

void invert_scalar(const int16_t* blocks, int count, const uint16_t* quant, uint8_t* samples, size_t stride) {
  for (int i = 0; i < count; ++i) invert_block(blocks + i * kBlockValues, quant, samples + i * kBlockEdge, stride);
}

const BlockLoops kScalarBlocks{"scalar", invert_scalar, upsample_h2v1, upsample_h2v2, upsample_h1v2, colour, gray};

}  // namespace headrace
