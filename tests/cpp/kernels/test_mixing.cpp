// Mixing of batches in place: against plain loops over copies, on every instruction set.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/kernels/mixup/mixing.h"
#include "core/kernels/resize/kernels.h"
#include "support/sanitizers.h"

using namespace headrace;
using namespace headrace::test;

namespace {

constexpr uint8_t kUntouched = 0xA5;
constexpr MixType kTypes[] = {MixType::kFloat16, MixType::kBfloat16, MixType::kFloat32, MixType::kFloat64};

std::vector<const Kernels*> sets() {
  std::vector<const Kernels*> found;
  for (const char* name : {"scalar", "avx2", "avx512", "neon"}) {
    if (const Kernels* set = kernels_named(name)) found.push_back(set);
  }
  return found;
}

/// Samples with a gap after each.
struct Batch {
  Batch(size_t samples, size_t elements, MixType type) : stride(elements * mix_bytes(type) + 24) {
    std::mt19937 random(static_cast<unsigned>(samples * 1000 + elements));
    std::normal_distribution<float> value;
    memory.assign(samples * stride, kUntouched);
    for (size_t i = 0; i < samples; ++i) {
      for (size_t k = 0; k < elements; ++k) put(memory.data() + i * stride, k, type, value(random));
    }
    view = {memory.data(), samples, stride, elements, type};
  }

  static void put(uint8_t* at, size_t k, MixType type, float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if (type == MixType::kFloat64) {
      const double wide = value;
      std::memcpy(at + k * 8, &wide, 8);
    } else if (type == MixType::kFloat32) {
      std::memcpy(at + k * 4, &value, 4);
    } else {
      // Cut off for bfloat16; for float16 any finite pattern will do.
      const auto half = static_cast<uint16_t>(type == MixType::kBfloat16 ? bits >> 16 : bits >> 13 & 0xBBFF);
      std::memcpy(at + k * 2, &half, 2);
    }
  }

  bool tidy() const {
    for (size_t i = 0; i < view.samples; ++i) {
      for (size_t k = stride - 24; k < stride; ++k) {
        if (memory[i * stride + k] != kUntouched) return false;
      }
    }
    return true;
  }

  size_t stride;
  std::vector<uint8_t> memory;
  MixBatch view;
};

template <class T>
std::vector<T> elements_of(const Batch& batch) {
  std::vector<T> made(batch.view.samples * batch.view.elements);
  for (size_t i = 0; i < batch.view.samples; ++i) {
    std::memcpy(made.data() + i * batch.view.elements, batch.memory.data() + i * batch.stride,
                batch.view.elements * sizeof(T));
  }
  return made;
}

template <class T>
void check_against_copies(size_t samples, size_t elements, MixType type, bool mirrored, const Kernels& set) {
  Batch batch(samples, elements, type);
  const std::vector<T> from = elements_of<T>(batch);
  const MixShares shares{0.3, 0.7};
  (mirrored ? mix_mirrored : mix_rolled)(batch.view, shares, *set.mixing);
  const std::vector<T> made = elements_of<T>(batch);
  CHECK(batch.tidy());
  size_t differ = 0;
  for (size_t i = 0; i < samples; ++i) {
    const size_t other = mirrored ? samples - 1 - i : (i + samples - 1) % samples;
    for (size_t k = 0; k < elements; ++k) {
      const volatile T a = from[other * elements + k] * static_cast<T>(shares.rest);
      const volatile T b = from[i * elements + k] * static_cast<T>(shares.share);
      differ += made[i * elements + k] != a + b;
    }
  }
  CHECK(differ == 0);
}

constexpr size_t kLengths[] = {1, 7, 8, 9, 100, 4096, 300007 / kCaseStep};

/// One value of float16 mixed with 0: rounded(value * share).
uint16_t scaled_half(uint16_t bits, double share, const MixLoops& loops) {
  uint16_t values[9] = {}, others[9] = {};
  values[0] = values[8] = bits;  // a block of a vector, and what is left over
  loops.with[static_cast<int>(MixType::kFloat16)](values, others, 9, {share, 0});
  const bool none = (values[0] & 0x7FFFU) > 0x7C00U && (values[8] & 0x7FFFU) > 0x7C00U;
  CHECK((none || values[0] == values[8]));
  return values[0];
}

}  // namespace

TEST_CASE("mixing gives what plain loops over copies give") {
  for (const Kernels* set : sets()) {
    CAPTURE(set->name);
    for (const size_t samples : {1, 2, 3, 8}) {
      for (const size_t elements : kLengths) {
        for (const bool mirrored : {false, true}) {
          check_against_copies<float>(samples, elements, MixType::kFloat32, mirrored, *set);
          check_against_copies<double>(samples, elements, MixType::kFloat64, mirrored, *set);
        }
      }
    }
  }
}

TEST_CASE("all sets mix alike") {
  for (const Kernels* set : sets()) {
    CAPTURE(set->name);
    for (const MixType type : kTypes) {
      for (const size_t elements : kLengths) {
        for (const bool mirrored : {false, true}) {
          Batch made(5, elements, type), expected(5, elements, type);
          const auto mix = mirrored ? mix_mirrored : mix_rolled;
          mix(made.view, {0.37, 0.63}, *set->mixing);
          mix(expected.view, {0.37, 0.63}, kScalarMixing);
          CHECK(made.memory == expected.memory);
        }
      }
    }
  }
}

TEST_CASE("every value of float16 keeps its value, and rounds to nearest, ties to even") {
  for (const Kernels* set : sets()) {
    CAPTURE(set->name);
    for (uint32_t bits = 0; bits <= 0x7C00; bits += kCaseStep) {
      if (bits < 0x7C00) CHECK(scaled_half(static_cast<uint16_t>(bits), 1, *set->mixing) == bits);
      if (bits > 0 && bits < 0x7C00) {
        CHECK(scaled_half(static_cast<uint16_t>(bits | 0x8000), 1, *set->mixing) == (bits | 0x8000));
      }
    }
    const auto scaled = [&](uint16_t bits, double share) { return scaled_half(bits, share, *set->mixing); };
    CHECK(scaled(0x0001, 0.5) == 0x0000);       // half of the smallest: a tie, to even
    CHECK(scaled(0x0003, 0.5) == 0x0002);       // 1.5 of the smallest
    CHECK(scaled(0x0001, 0.500001) == 0x0001);  // a little more than a half
    CHECK(scaled(0x0401, 0.5) == 0x0200);       // 512.5 of the smallest
    CHECK(scaled(0x0403, 0.5) == 0x0202);       // 513.5
    CHECK(scaled(0x7BFF, 2) == 0x7C00);         // infinity
    CHECK(scaled(0x3C00, 65519.99) == 0x7BFF);  // the largest
    CHECK(scaled(0x3C00, 65520) == 0x7C00);
  }
}

TEST_CASE("values without an end, and no numbers") {
  const float endless = std::numeric_limits<float>::infinity();
  for (const Kernels* set : sets()) {
    CAPTURE(set->name);
    float values[] = {endless, -endless, std::nanf("")}, others[] = {1, 1, 1};
    set->mixing->with[static_cast<int>(MixType::kFloat32)](values, others, 3, {0.5, 0.5});
    CHECK((values[0] == endless && values[1] == -endless && std::isnan(values[2])));
    for (const uint32_t none : {0x7E00U, 0x7C01U, 0xFFFFU}) {
      CHECK((scaled_half(static_cast<uint16_t>(none), 0.5, *set->mixing) & 0x7FFFU) > 0x7C00U);
    }
    for (const uint32_t none : {0x7FC0U, 0x7F81U, 0xFFFFU}) {
      auto value = static_cast<uint16_t>(none);
      uint16_t other = 0;
      set->mixing->with[static_cast<int>(MixType::kBfloat16)](&value, &other, 1, {0.5, 0.5});
      CHECK((value & 0x7FFFU) > 0x7F80U);
    }
  }
}

TEST_CASE("boxes move to the next sample, or to the one across") {
  constexpr size_t kPlanes = 2, kHeight = 5, kWidth = 1500;
  for (const size_t samples : {1, 2, 3, 6}) {
    for (const bool mirrored : {false, true}) {
      std::vector<uint8_t> from(samples * kPlanes * kHeight * kWidth);
      std::mt19937 random(static_cast<unsigned>(samples));
      for (uint8_t& byte : from) byte = static_cast<uint8_t>(random());
      std::vector<uint8_t> made = from;
      constexpr size_t kTop = 1, kRows = 3, kLeft = 200, kBytes = 1100;
      const MixBoxes boxes{.data = made.data() + kTop * kWidth + kLeft,
                           .samples = samples,
                           .planes = kPlanes,
                           .rows = kRows,
                           .bytes = kBytes,
                           .sample_stride = kPlanes * kHeight * kWidth,
                           .plane_stride = kHeight * kWidth,
                           .row_stride = kWidth};
      (mirrored ? mirror_boxes : roll_boxes)(boxes);
      size_t differ = 0;
      for (size_t at = 0; at < from.size(); ++at) {
        const size_t x = at % kWidth, y = at / kWidth % kHeight, sample = at / (kWidth * kHeight * kPlanes);
        const bool inside = x >= kLeft && x < kLeft + kBytes && y >= kTop && y < kTop + kRows;
        const size_t other = !inside ? sample : mirrored ? samples - 1 - sample : (sample + samples - 1) % samples;
        differ += made[at] != from[at + other * kPlanes * kHeight * kWidth - sample * kPlanes * kHeight * kWidth];
      }
      CHECK(differ == 0);
    }
  }
}
