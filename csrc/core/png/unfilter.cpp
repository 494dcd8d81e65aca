// The filters of PNG rows, undone.
#include "core/png/unfilter.h"

#include <cstdlib>
#include <cstring>

#include "core/png/paeth_rows.h"
#include "core/png/pixel_vectors.h"

namespace headrace {
namespace {

constexpr int kPaeth = 4;

// A pixel depends on the one before it, so its bytes are all that can be done at once: the first ones of a vector.

// Reads up to two bytes more than a pixel has, which are those of the next one, or slack.
template <int kPixel>
EightBytes load(const uint8_t* from) {
  EightBytes made = {};
  std::memcpy(&made, from, kPixel <= 4 ? 4 : 8);
  return made;
}

template <int kPixel>
void store(EightBytes pixel, uint8_t* to) {
  std::memcpy(to, &pixel, kPixel);
}

uint8_t predict_byte(int left, int above, int corner) {
  const int to_left = above - corner, to_above = left - corner;
  const int left_off = std::abs(to_left), above_off = std::abs(to_above), corner_off = std::abs(to_left + to_above);
  const int straight = left_off <= above_off ? left : above;
  const int least = left_off <= above_off ? left_off : above_off;
  return static_cast<uint8_t>(least <= corner_off ? straight : corner);
}

uint8_t mean(int left, int above) { return static_cast<uint8_t>((left + above) / 2); }

// For pixels of one and two bytes.
template <int kPixel>
struct ByteLoops {
  static void add_left(uint8_t* row, size_t bytes) {
    for (size_t i = kPixel; i < bytes; ++i) row[i] = static_cast<uint8_t>(row[i] + row[i - kPixel]);
  }
  static void add_mean(uint8_t* row, const uint8_t* above, size_t bytes) {
    for (size_t i = kPixel; i < bytes; ++i) {
      row[i] = static_cast<uint8_t>(row[i] + mean(row[i - kPixel], above[i]));
    }
  }
  static void add_prediction(uint8_t* row, const uint8_t* above, size_t bytes) {
    for (size_t i = kPixel; i < bytes; ++i) {
      row[i] = static_cast<uint8_t>(row[i] + predict_byte(row[i - kPixel], above[i], above[i - kPixel]));
    }
  }
};

// For larger pixels, which rows have whole.
template <int kPixel>
struct PixelLoops {
  static void add_left(uint8_t* row, size_t bytes) {
    EightBytes left = load<kPixel>(row);
    for (size_t i = kPixel; i < bytes; i += kPixel) {
      left += load<kPixel>(row + i);
      store<kPixel>(left, row + i);
    }
  }
  static void add_mean(uint8_t* row, const uint8_t* above, size_t bytes) {
    EightWords left = wide(load<kPixel>(row));
    for (size_t i = kPixel; i < bytes; i += kPixel) {
      const EightWords mean = (left + wide(load<kPixel>(above + i))) >> 1;
      left = (wide(load<kPixel>(row + i)) + mean) & 0xff;
      store<kPixel>(__builtin_convertvector(left, EightBytes), row + i);
    }
  }
  static void add_prediction(uint8_t* row, const uint8_t* above, size_t bytes) {
    EightWords left = wide(load<kPixel>(row)), corner = wide(load<kPixel>(above));
    for (size_t i = kPixel; i < bytes; i += kPixel) {
      const EightWords up = wide(load<kPixel>(above + i));
      const EightWords sum = (wide(load<kPixel>(row + i)) + predict(left, up, corner)) & 0xff;
      store<kPixel>(__builtin_convertvector(sum, EightBytes), row + i);
      left = sum;
      corner = up;
    }
  }
};

void add_above(uint8_t* row, const uint8_t* above, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) row[i] = static_cast<uint8_t>(row[i] + above[i]);
}

// The first pixel has none at its left; the loops begin with the second.
template <class Loops>
bool run(int filter, uint8_t* row, const uint8_t* above, size_t bytes, size_t pixel) {
  const size_t first = bytes < pixel ? bytes : pixel;
  switch (filter) {
    case 0:
      return true;
    case 1:
      Loops::add_left(row, bytes);
      return true;
    case 2:
      if (above != nullptr) add_above(row, above, bytes);
      return true;
    case 3:
      for (size_t i = 0; above != nullptr && i < first; ++i) row[i] = static_cast<uint8_t>(row[i] + above[i] / 2);
      if (above != nullptr) {
        Loops::add_mean(row, above, bytes);
      } else {
        for (size_t i = pixel; i < bytes; ++i) row[i] = static_cast<uint8_t>(row[i] + row[i - pixel] / 2);
      }
      return true;
    case kPaeth:
      if (above != nullptr) {
        add_above(row, above, first);
        Loops::add_prediction(row, above, bytes);
      } else {
        Loops::add_left(row, bytes);
      }
      return true;
    default:
      return false;
  }
}

/// How many rows from the first one on have the Paeth filter, at most `most`.
int count_paeth_rows(const uint8_t* filter, size_t stride, int most) {
  int rows = 0;
  while (rows < most && filter[static_cast<size_t>(rows) * stride] == kPaeth) ++rows;
  return rows;
}

}  // namespace

bool unfilter_row(int filter, uint8_t* row, const uint8_t* above, size_t bytes, int pixel) {
  switch (pixel) {
    case 1:
      return run<ByteLoops<1>>(filter, row, above, bytes, 1);
    case 2:
      return run<ByteLoops<2>>(filter, row, above, bytes, 2);
    case 3:
      return run<PixelLoops<3>>(filter, row, above, bytes, 3);
    case 4:
      return run<PixelLoops<4>>(filter, row, above, bytes, 4);
    case 6:
      return run<PixelLoops<6>>(filter, row, above, bytes, 6);
    default:
      return run<PixelLoops<8>>(filter, row, above, bytes, 8);
  }
}

bool unfilter_rows(uint8_t* rows, size_t bytes, int height, int pixel) {
  const size_t stride = bytes + 1;
  const auto [at_once, undo] = paeth_rows(pixel);
  const bool whole = bytes % static_cast<size_t>(pixel) == 0;
  const uint8_t* above = nullptr;
  for (int y = 0; y < height;) {
    const bool several = whole && above != nullptr && y + at_once <= height;
    const int done = several && count_paeth_rows(rows, stride, at_once) == at_once ? at_once : 1;
    if (done > 1) {
      undo(rows + 1, stride, above, bytes);
    } else if (!unfilter_row(rows[0], rows + 1, above, bytes, pixel)) {
      return false;
    }
    rows += static_cast<size_t>(done) * stride;
    above = rows - bytes;
    y += done;
  }
  return true;
}

}  // namespace headrace
