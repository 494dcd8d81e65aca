// Mixing of bytes into normalised floats: against plain loops over the table's entries, on every instruction set.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

#include "core/byte_mixing/byte_mixing.h"
#include "core/kernels/kernels.h"

using namespace headrace;

namespace {

constexpr float kMean[] = {0.485F, 0.456F, 0.406F}, kDeviation[] = {0.229F, 0.224F, 0.225F};

std::vector<float> normalised() {
  std::vector<float> entries;
  for (int c = 0; c < 3; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      entries.push_back((static_cast<float>(byte) / 255.0F - kMean[c]) / kDeviation[c]);
    }
  }
  return entries;
}

std::vector<const char*> sets() {
  std::vector<const char*> found;
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    if (kernels_named(name) != nullptr) found.push_back(name);
  }
  return found;
}

/// A batch of random bytes, and room for its elements with a guard behind them.
struct Fixture {
  Fixture(size_t samples, size_t height, size_t width)
      : bytes(samples * 3 * height * width), out(bytes.size() + 16, -77.0F) {
    std::mt19937 random(static_cast<unsigned>(samples * 1000 + height * width));
    for (uint8_t& one : bytes) one = static_cast<uint8_t>(random());
    batch = {bytes.data(), out.data(), samples, height, width};
    table.by = find_normalisation(entries.data()).value();
  }

  /// The element of sample `i` at `at` (in the sample) without any mixing.
  float element(size_t i, size_t at) const {
    const size_t plane = batch.height * batch.width;
    return entries[at / plane * 256 + bytes[i * 3 * plane + at]];
  }

  size_t before(size_t i) const { return (i + batch.samples - 1) % batch.samples; }

  bool tidy() const {
    for (size_t i = bytes.size(); i < out.size(); ++i) {
      if (out[i] != -77.0F) return false;
    }
    return true;
  }

  std::vector<uint8_t> bytes;
  std::vector<float> out;
  std::vector<float> entries = normalised();
  ByteBatch batch;
  ByteTable table{entries.data(), {}};
};

bool same(const std::vector<float>& made, const std::vector<float>& expected) {
  return std::memcmp(made.data(), expected.data(), expected.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("every set mixes all bytes as its table and two rounded products say") {
  for (const char* set : sets()) {
    for (const size_t samples : {1, 2, 5}) {
      for (const size_t width : {1, 7, 16, 67}) {
        Fixture all(samples, 9, width);
        const float share = 0.3F, rest = 0.7F;
        mix_bytes(all.batch, all.table, share, rest, byte_loops(set));
        std::vector<float> expected;
        for (size_t i = 0; i < samples; ++i) {
          for (size_t at = 0; at < 3 * 9 * width; ++at) {
            const volatile float other = all.element(all.before(i), at) * rest, own = all.element(i, at) * share;
            expected.push_back(other + own);
          }
        }
        CHECK_MESSAGE(same(all.out, expected), set);
        CHECK(all.tidy());
      }
    }
  }
}

TEST_CASE("every set cuts boxes out of the sample before, also empty ones and whole images") {
  const size_t height = 9, width = 13;
  for (const char* set : sets()) {
    for (const ByteBox& box : {ByteBox{0, 0, 0, 0}, ByteBox{0, 0, width, height}, ByteBox{3, 2, 11, 7},
                               ByteBox{0, 8, 1, 9}, ByteBox{12, 0, 13, 9}, ByteBox{5, 4, 5, 8}, ByteBox{4, 5, 8, 5}}) {
      for (const size_t samples : {1, 2, 5}) {
        Fixture all(samples, height, width);
        cut_bytes(all.batch, all.table, box, byte_loops(set));
        std::vector<float> expected;
        for (size_t i = 0; i < samples; ++i) {
          for (size_t at = 0; at < 3 * height * width; ++at) {
            const size_t x = at % width, y = at / width % height;
            const bool inside = x >= box.left && x < box.right && y >= box.top && y < box.bottom;
            expected.push_back(all.element(inside ? all.before(i) : i, at));
          }
        }
        CHECK_MESSAGE(same(all.out, expected), set);
        CHECK(all.tidy());
      }
    }
  }
}
