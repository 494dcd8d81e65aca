// Geometry shared by all stages: boxes in pixels, the pixel format between stages, and the interface of row sinks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

struct Size {
  int width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

/// Positions [begin, end) along one axis.
struct Span {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
};

/// Pixels [x, x + width) x [y, y + height). May reach outside its image where a step pads.
struct Box {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Box&) const = default;
  Size size() const { return {width, height}; }
  bool inside(Size image) const { return x >= 0 && y >= 0 && x + width <= image.width && y + height <= image.height; }
};

/// a / b, rounded up. Neither is negative.
template <class Int>
constexpr Int divide_up(Int a, Int b) {
  return (a + b - 1) / b;
}

constexpr Box whole_image(Size image) { return {0, 0, image.width, image.height}; }

/// The values of pixels outside an image. The names are those of torchvision's padding_mode.
enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kSymmetric };

/// Bytes of a pixel between stages: R, G, B, X, as in Pillow's memory. A pixel is one 32-bit load, and four taps of a
/// filter are one 16-byte load. The value of X is ignored.
inline constexpr int kPixelBytes = 4;

/// Bytes past the last pixel of a row that the next stage may read, but not write, so that vector loads need no tail
/// code.
inline constexpr size_t kRowSlack = 64;

/// Receives the rows of an image from top to bottom. Stages are chained as sinks: decoder -> resampler -> store.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// `count` rows of RGBX pixels, `stride` bytes apart, valid during the call only (kRowSlack applies to the last too).
  virtual void push(const uint8_t* rows, size_t stride, int count) = 0;
};

}  // namespace headrace
