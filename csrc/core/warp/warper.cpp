// PIL.Image.transform of whole images, AFFINE and PERSPECTIVE, with Pillow's arithmetic.
#include "core/warp/warper.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace headrace {
namespace {

constexpr double kFixedLimit = 32768.0;

// The conversion of an x86 processor: what does not fit becomes the least number.
int32_t to_int(double value) {
  return value > -2147483649.0 && value < 2147483648.0 ? static_cast<int32_t>(value)
                                                       : std::numeric_limits<int32_t>::min();
}

uint32_t to_fixed(double value) { return static_cast<uint32_t>(to_int(std::floor(value * 65536.0 + 0.5))); }

uint32_t load(const uint8_t* pixels, size_t at) {
  uint32_t pixel;
  std::memcpy(&pixel, pixels + at * kPixelBytes, kPixelBytes);
  return pixel;
}

void store(uint8_t* pixels, size_t at, uint32_t pixel) { std::memcpy(pixels + at * kPixelBytes, &pixel, kPixelBytes); }

// The pixels of an image, by column and row.
class Pixels {
 public:
  Pixels(const uint8_t* pixels, Size size) : pixels_(pixels), size_(size) {}
  uint32_t operator()(int x, int y) const {
    return load(pixels_, static_cast<size_t>(y) * static_cast<size_t>(size_.width) + static_cast<size_t>(x));
  }
  // The pixel if there is one, else `fill`.
  uint32_t or_fill(int x, int y, uint32_t fill) const {
    return x >= 0 && x < size_.width && y >= 0 && y < size_.height ? (*this)(x, y) : fill;
  }

 private:
  const uint8_t* pixels_;
  Size size_;
};

// Calls make(x, y) for each output, in order, and stores what it returns.
template <class Make>
void each(Size out, uint8_t* to, Make make) {
  size_t at = 0;
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) store(to, at++, make(x, y));
  }
}

int whole(double at, int size) { return within(at, size) ? static_cast<int>(at) : -1; }

}  // namespace

WarpPath warp_path(const Warp& warp) {
  if (warp.perspective || warp.filter != Filter::kNearest) return WarpPath::kEachPixel;
  const double* a = warp.a;
  if (a[1] == 0 && a[3] == 0) return WarpPath::kScale;
  const auto near = [a](int x, int y) {
    return std::fabs(x * a[0] + y * a[1] + a[2]) < kFixedLimit && std::fabs(x * a[3] + y * a[4] + a[5]) < kFixedLimit;
  };
  const Size out = warp.out;
  const bool fixed = near(0, 0) && near(out.width, out.height) && near(0, out.height) && near(out.width, 0);
  return fixed ? WarpPath::kFixed : WarpPath::kAddedUp;
}

FixedMatrix fixed_matrix(const Warp& warp) {
  const double* a = warp.a;
  return {{to_fixed(a[0]), to_fixed(a[1]), to_fixed(a[2] + a[0] * 0.5 + a[1] * 0.5), to_fixed(a[3]), to_fixed(a[4]),
           to_fixed(a[5] + a[3] * 0.5 + a[4] * 0.5)}};
}

void Warper::run(const Warp& warp, const uint8_t* from, Size in, uint8_t* to) {
  const Size out = warp.out;
  const Pixels pixels(from, in);
  const double* a = warp.a;
  switch (warp_path(warp)) {
    case WarpPath::kEachPixel:
      return each(out, to, [&](int x, int y) { return warped_pixel(warp, x, y, in.width, in.height, pixels); });
    case WarpPath::kFixed: {
      const FixedMatrix fixed = fixed_matrix(warp);
      return each(out, to,
                  [&](int x, int y) { return pixels.or_fill(fixed.column(x, y), fixed.row(x, y), warp.fill); });
    }
    case WarpPath::kScale: {
      columns_.resize(static_cast<size_t>(out.width));
      double u = a[2] + a[0] * 0.5, v = a[5] + a[4] * 0.5;
      for (int& column : columns_) {
        column = whole(u, in.width);
        u += a[0];
      }
      for (int y = 0; y < out.height; ++y, v += a[4]) {
        const int row = whole(v, in.height);
        each({out.width, 1}, to + static_cast<size_t>(y) * static_cast<size_t>(out.width) * kPixelBytes,
             [&](int x, int) { return pixels.or_fill(columns_[static_cast<size_t>(x)], row, warp.fill); });
      }
      return;
    }
    case WarpPath::kAddedUp: {
      double row_u = a[2] + a[1] * 0.5 + a[0] * 0.5, row_v = a[5] + a[4] * 0.5 + a[3] * 0.5;
      for (int y = 0; y < out.height; ++y, row_u += a[1], row_v += a[4]) {
        double u = row_u, v = row_v;
        each({out.width, 1}, to + static_cast<size_t>(y) * static_cast<size_t>(out.width) * kPixelBytes, [&](int, int) {
          const uint32_t pixel = pixels.or_fill(whole(u, in.width), whole(v, in.height), warp.fill);
          u += a[0];
          v += a[3];
          return pixel;
        });
      }
      return;
    }
  }
}

}  // namespace headrace
