// Note [diagonal]: a byte that the Paeth filter predicts depends on the one at its left, so one row is a serial chain.
// Row k is worked on k pixels to the left of the first: then the pixel above each one is finished, and lanes of one
// vector hold a pixel of each row. A step goes one pixel to the right in all rows.
#include "core/png/paeth_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/png/pixel_vectors.h"

namespace headrace {
namespace {

/// Eight lanes in which the values of a row, `kSlot` lanes, have moved to those of the row after it; the first row's
/// are the last ones of `before`.
template <int kSlot>
EightWords moved_down(EightWords before, EightWords values) {
  if constexpr (kSlot == 1) return __builtin_shufflevector(before, values, 7, 8, 9, 10, 11, 12, 13, 14);
  if constexpr (kSlot == 2) return __builtin_shufflevector(before, values, 6, 7, 8, 9, 10, 11, 12, 13);
  if constexpr (kSlot == 4) return __builtin_shufflevector(before, values, 4, 5, 6, 7, 8, 9, 10, 11);
  return before;
}

template <int kBytes>
uint64_t load(const uint8_t* from) {
  uint64_t made = 0;
  std::memcpy(&made, from, kBytes);
  return made;
}

/// Pixels of `kPixel` bytes in `kVectors` vectors. Each pixel has `kSlot` lanes.
template <int kPixel, int kVectors>
class Diagonal {
 public:
  static constexpr int kSlot = kPixel == 3 ? 4 : kPixel == 6 ? 8 : kPixel;
  static constexpr int kInVector = 8 / kSlot;
  static constexpr int kRows = kInVector * kVectors;

  static void run(uint8_t* first, size_t stride, const uint8_t* above, size_t size) {
    State state{};
    for (int k = 0; k < kRows; ++k) state.rows[k] = first + static_cast<size_t>(k) * stride;
    const auto bytes = static_cast<ptrdiff_t>(size);
    constexpr ptrdiff_t kLag = (kRows - 1) * kPixel;
    ptrdiff_t at = 0;
    for (; at < kLag; at += kPixel) step<true>(state, above, at, bytes);
    for (; at < bytes - kPixel; at += kPixel) step<false>(state, above, at, bytes);
    for (; at < bytes + kLag; at += kPixel) step<true>(state, above, at, bytes);
  }

 private:
  struct State {
    std::array<uint8_t*, kRows> rows;
    std::array<EightWords, kVectors> left, corner;
  };

  static uint8_t* place(const State& state, int row, ptrdiff_t at) { return state.rows[row] + at - row * kPixel; }

  /// Whether a row has a pixel `kPixel * row` bytes before `at`.
  static bool inside(int row, ptrdiff_t at, ptrdiff_t bytes) { return at >= row * kPixel && at - row * kPixel < bytes; }

  /// `kEdge`: some rows have not begun or have ended.
  template <bool kEdge>
  [[gnu::always_inline]] static void step(State& state, const uint8_t* above, ptrdiff_t at, ptrdiff_t bytes) {
    constexpr int kRead = kEdge ? kPixel : kSlot;
    EightWords before = wide(at < bytes ? load<kRead>(above + at) << (64 - 8 * kSlot) : 0);
    for (int vector = 0; vector < kVectors; ++vector) {
      const int first = vector * kInVector;
      const uint64_t raw = load_pixels<kEdge>(state, first, at, bytes);
      EightWords& left = state.left[vector];
      const EightWords up = moved_down<kSlot>(before, left);
      const EightWords sum = (wide(raw) + predict(left, up, state.corner[vector])) & 0xff;
      state.corner[vector] = up;
      before = left;
      left = sum;
      const uint64_t made = narrow(sum);
      uint64_t begun = 0;
      for (int k = 0; k < kInVector; ++k) {
        const uint64_t pixel = made >> (8 * kSlot * k);
        if (!kEdge || inside(first + k, at, bytes)) std::memcpy(place(state, first + k, at), &pixel, kPixel);
        if (at >= (first + k) * kPixel) begun |= (~uint64_t{0} >> (64 - 8 * kSlot)) << (8 * kSlot * k);
      }
      if constexpr (kEdge) left = wide(made & begun);  // left of the first pixel all is 0
    }
  }

  template <bool kEdge>
  [[gnu::always_inline]] static uint64_t load_pixels(const State& state, int first, ptrdiff_t at, ptrdiff_t bytes) {
    constexpr int kRead = kEdge ? kPixel : kSlot;
    uint64_t made = 0;
    for (int k = 0; k < kInVector; ++k) {
      if (!kEdge || inside(first + k, at, bytes)) {
        made |= load<kRead>(place(state, first + k, at)) << (8 * kSlot * k);
      }
    }
    return made;
  }
};

template <int kPixel, int kVectors>
constexpr PaethRows kRowsOf{Diagonal<kPixel, kVectors>::kRows, Diagonal<kPixel, kVectors>::run};

}  // namespace

PaethRows paeth_rows(int pixel) {
  switch (pixel) {
    case 1:
      return kRowsOf<1, 2>;
    case 2:
      return kRowsOf<2, 2>;
    case 3:
      return kRowsOf<3, 2>;
    case 4:
      return kRowsOf<4, 2>;
    case 6:
      return kRowsOf<6, 3>;
    default:
      return kRowsOf<8, 3>;
  }
}

}  // namespace headrace
