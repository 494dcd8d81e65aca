// A decoded image as the planes of samples that its file contains, and its pixels: equal to those of libjpeg's fancy
// upsampling and colour conversion, to the bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/geometry.h"
#include "core/base/pixel_math.h"

namespace headrace {

/// How a component is upsampled to the image's size. kH2V1, kH1V2, kH2V2: jdsample.c's fancy (triangle) upsampling.
enum class Upsampling : uint8_t { kNone, kH2V1, kH1V2, kH2V2, kReplicate };

/// The contents of the planes. kRgbx: one plane of four-byte pixels.
enum class Colour : uint8_t { kRgbx, kGray, kYcc, kRgb };

/// The samples of one component, or a part of them.
struct Plane {
  const uint8_t* data = nullptr;       // the sample (x0, y0)
  int32_t stride = 0;                  // bytes from row to row
  int32_t x0 = 0, y0 = 0;              // the first sample present, on the component's own grid
  int32_t width = 0, height = 0;       // of the whole component: fancy upsampling repeats its last real sample
  int32_t factor_x = 1, factor_y = 1;  // pixels a sample covers
  Upsampling upsampling = Upsampling::kNone;
};

struct PlanarImage {
  Colour colour = Colour::kGray;
  int32_t width = 0, height = 0;  // pixels, of the whole image
  Plane plane[3];
};

HEADRACE_HD inline int sample_at(const Plane& plane, int x, int y) {
  return plane.data[static_cast<ptrdiff_t>(y - plane.y0) * plane.stride + (x - plane.x0)];
}

/// The second-nearest sample of a pixel whose nearest one is `at`: the next for an odd pixel, else the previous one.
HEADRACE_HD inline int neighbour(int at, bool odd, int size) {
  const int next = odd ? at + 1 : at - 1;
  return next < 0 ? 0 : next >= size ? size - 1 : next;
}

/// The component's value at a pixel.
HEADRACE_HD inline int upsampled(const Plane& plane, int x, int y) {
  switch (plane.upsampling) {
    case Upsampling::kNone:
      return sample_at(plane, x, y);
    case Upsampling::kH2V1: {
      const int cx = x >> 1, nx = neighbour(cx, x & 1, plane.width);
      return (3 * sample_at(plane, cx, y) + sample_at(plane, nx, y) + (x & 1 ? 2 : 1)) >> 2;
    }
    case Upsampling::kH1V2: {
      const int cy = y >> 1, ny = neighbour(cy, y & 1, plane.height);
      return (3 * sample_at(plane, x, cy) + sample_at(plane, x, ny) + (y & 1 ? 2 : 1)) >> 2;
    }
    case Upsampling::kH2V2: {
      const int cx = x >> 1, nx = neighbour(cx, x & 1, plane.width);
      const int cy = y >> 1, ny = neighbour(cy, y & 1, plane.height);
      const int near = 3 * sample_at(plane, cx, cy) + sample_at(plane, cx, ny);
      const int far = 3 * sample_at(plane, nx, cy) + sample_at(plane, nx, ny);
      return (3 * near + far + (x & 1 ? 7 : 8)) >> 4;
    }
    case Upsampling::kReplicate:
      break;
  }
  return sample_at(plane, x / plane.factor_x, y / plane.factor_y);
}

/// JFIF's conversion in 16-bit fixed point, as in jdcolor.c.
HEADRACE_HD inline uint32_t rgb_of_ycc(int y, int cb, int cr) {
  cb -= 128;
  cr -= 128;
  const int r = y + ((91881 * cr + 32768) >> 16);
  const int g = y + ((-22554 * cb - 46802 * cr + 32768) >> 16);
  const int b = y + ((116130 * cb + 32768) >> 16);
  return pack_rgbx(clamp_to_byte(r), clamp_to_byte(g), clamp_to_byte(b));
}

/// The pixel (x, y), packed. It must be inside the image, and its samples must be present.
HEADRACE_HD inline uint32_t pixel_at(const PlanarImage& image, int x, int y) {
  const Plane* plane = image.plane;
  switch (image.colour) {
    case Colour::kRgbx: {
      const uint8_t* at =
          plane->data + static_cast<ptrdiff_t>(y - plane->y0) * plane->stride + (x - plane->x0) * kPixelBytes;
      return pack_rgbx(at[0], at[1], at[2]);
    }
    case Colour::kGray: {
      const int v = sample_at(plane[0], x, y);
      return pack_rgbx(v, v, v);
    }
    case Colour::kRgb:
      return pack_rgbx(upsampled(plane[0], x, y), upsampled(plane[1], x, y), upsampled(plane[2], x, y));
    case Colour::kYcc:
      break;
  }
  return rgb_of_ycc(upsampled(plane[0], x, y), upsampled(plane[1], x, y), upsampled(plane[2], x, y));
}

}  // namespace headrace
