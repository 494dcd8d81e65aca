// The block loops: every set gives the bytes of the scalar one, and the scalar inverse DCT those of libjpeg-turbo.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "core/jpeg/decode/jpeg_decoder.h"
#include "core/jpeg/planes/planar_image.h"
#include "support/block_sets.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;
using Random = std::mt19937;

namespace {

constexpr int kMostBlocks = 12;

int draw(Random& random, int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }

/// Blocks of each kind that the loops tell apart, with values of each size.
std::vector<int16_t> random_blocks(Random& random, int count, int limit) {
  std::vector<int16_t> blocks;
  const int kind_of_all = draw(random, 0, 5);
  for (int b = 0; b < count; ++b) {
    const int kind = kind_of_all == 5 ? draw(random, 0, 4) : kind_of_all, share = draw(random, 1, 100);
    for (int i = 0; i < kBlockValues; ++i) {
      const int x = i % 8, y = i / 8;
      const bool inside[] = {i == 0, y == 0, x < 4 && y < 4, y < 4, true};
      const bool value = inside[kind] && draw(random, 1, 100) <= share;
      blocks.push_back(static_cast<int16_t>(value ? draw(random, -limit, limit) : 0));
    }
  }
  return blocks;
}

struct alignas(64) Quant {
  uint16_t factors[kBlockValues];
};

Quant random_quant(Random& random, int most) {
  Quant quant;
  for (uint16_t& factor : quant.factors) factor = static_cast<uint16_t>(draw(random, 0, most));
  return quant;
}

struct alignas(64) Coefficients {
  int16_t values[kMostBlocks * kBlockValues];
};

Bytes random_bytes(Random& random, size_t count) {
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(draw(random, 0, 255));
  return bytes;
}

}  // namespace

TEST_CASE("the sets invert blocks alike, whatever the coefficients") {
  Random random(1);
  for (int i = 0; i < 4000; ++i) {
    // Usual values; then those where 16 bits wrap or saturate.
    const int limit = std::array{3, 60, 1023, 2047, 32767}[static_cast<size_t>(i) % 5];
    const int most = std::array{1, 16, 255, 65535}[static_cast<size_t>(i / 5) % 4];
    const int count = draw(random, 1, kMostBlocks - 3);
    Coefficients coefficients{};
    const std::vector<int16_t> blocks = random_blocks(random, count, limit);
    std::copy(blocks.begin(), blocks.end(), coefficients.values);
    const Quant quant = random_quant(random, most);
    constexpr size_t kStride = kMostBlocks * 8 + 32;
    Bytes expected;
    for (const BlockLoops* set : block_sets()) {
      CAPTURE(set->name);
      CAPTURE(i);
      Bytes samples(8 * kStride, 77);
      set->invert(coefficients.values, count, quant.factors, samples.data(), kStride);
      const int whole_groups = (count + kBlockGroup - 1) / kBlockGroup * kBlockGroup;
      for (size_t y = 0; y < 8; ++y) {
        REQUIRE(std::all_of(samples.begin() + static_cast<ptrdiff_t>(y * kStride) + 8 * whole_groups,
                            samples.begin() + static_cast<ptrdiff_t>((y + 1) * kStride),
                            [](uint8_t byte) { return byte == 77; }));
        std::fill(samples.begin() + static_cast<ptrdiff_t>(y * kStride) + 8 * count,
                  samples.begin() + static_cast<ptrdiff_t>((y + 1) * kStride), uint8_t{0});
      }
      if (expected.empty()) expected = samples;
      REQUIRE(samples == expected);
    }
  }
}

TEST_CASE("blocks of any coefficients and quantisation have libjpeg-turbo's samples") {
  Random random(2);
  constexpr int kEdge = 5, kBlocks = kEdge * kEdge;
  for (int i = 0; i < 400; ++i) {
    const int limit = std::array{1, 30, 300, 1023}[static_cast<size_t>(i) % 4];  // an encoder writes no more than 1023
    const int most = std::array{1, 16, 255, 65535}[static_cast<size_t>(i / 4) % 4];
    const Quant quant = random_quant(random, most);
    const Bytes jpeg = make_jpeg_of_blocks(kEdge, kEdge, random_blocks(random, kBlocks, limit), quant.factors);
    const JpegHeader header = parse_jpeg_header(jpeg);
    REQUIRE(header.not_plain == nullptr);
    const Bytes whole = decode_whole(jpeg);
    for (const BlockLoops* set : block_sets()) {
      CAPTURE(set->name);
      CAPTURE(i);
      REQUIRE(decode_box(set, jpeg, header, {0, 0, 8 * kEdge, 8 * kEdge}) == whole);
    }
  }
}

TEST_CASE("all colours are converted as libjpeg does, and as on a GPU") {
  Bytes luma(256 + kSampleSlack), u(luma.size()), v(luma.size());
  for (int i = 0; i < 256; ++i) luma[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
  Bytes pixels(256 * 4);
  for (const BlockLoops* set : block_sets()) {
    CAPTURE(set->name);
    int different = 0;
    for (int cb = 0; cb < 256; ++cb)
      for (int cr = 0; cr < 256; ++cr) {
        std::memset(u.data(), cb, 256);
        std::memset(v.data(), cr, 256);
        set->colour(luma.data(), u.data(), v.data(), 256, pixels.data());
        for (int y = 0; y < 256; ++y) {
          const uint8_t* pixel = &pixels[static_cast<size_t>(4 * y)];
          if (pack_rgbx(pixel[0], pixel[1], pixel[2]) != rgb_of_ycc(y, cb, cr) || pixel[3] != 255) ++different;
        }
      }
    CHECK(different == 0);
  }
}

TEST_CASE("the sets widen, mix and convert rows of every length alike") {
  Random random(3);
  for (int count = 1; count < 150; ++count) {
    const size_t room = static_cast<size_t>(count) + 2 * kSampleSlack;
    const Bytes a = random_bytes(random, room), b = random_bytes(random, room), c = random_bytes(random, room);
    const uint8_t *near = a.data() + kSampleSlack, *far = b.data() + kSampleSlack, *third = c.data() + kSampleSlack;
    std::array<Bytes, 6> expected;
    for (const BlockLoops* set : block_sets()) {
      CAPTURE(set->name);
      CAPTURE(count);
      std::array<Bytes, 6> made;
      for (Bytes& bytes : made) bytes.resize(4 * (static_cast<size_t>(count) + kSampleSlack));
      set->upsample_h2v1(near, count, made[0].data());
      set->upsample_h2v2(near, far, count, made[1].data());
      set->upsample_h1v2(near, far, 1, count, made[2].data());
      set->upsample_h1v2(near, far, 2, count, made[3].data());
      set->colour(near, far, third, count, made[4].data());
      set->gray(near, count, made[5].data());
      const size_t bytes_each[6] = {2, 2, 1, 1, 4, 4};
      for (size_t i = 0; i < made.size(); ++i) made[i].resize(bytes_each[i] * static_cast<size_t>(count));
      if (expected[0].empty()) expected = made;
      REQUIRE(made == expected);
    }
  }
}
