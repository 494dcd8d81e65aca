// Plain geometry shared by every stage: boxes in pixels and the pixel format that the stages hand to one another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

struct Size {
  int width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

/// Pixels [x, x + width) x [y, y + height). May reach outside its image where a step pads.
struct Box {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Box&) const = default;
  Size size() const { return {width, height}; }
  bool inside(Size image) const { return x >= 0 && y >= 0 && x + width <= image.width && y + height <= image.height; }
};

/// What lies outside an image, named as torchvision's padding_mode.
enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kSymmetric };

/// Between stages a pixel is four bytes R, G, B, X, as in Pillow's memory: one 32-bit load each, and four taps of a
/// filter in one 16-byte load. X is never looked at.
inline constexpr int kPixelBytes = 4;

/// Every row that stages hand on may be read (not written) this far past its last pixel, so that vector loads need no
/// tail code.
inline constexpr size_t kRowSlack = 64;

/// Takes the rows of an image from top to bottom. Stages are chained as sinks: decoder -> resampler -> store.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// `count` rows of RGBX pixels, `stride` bytes apart, valid during the call only (kRowSlack applies to the last too).
  virtual void push(const uint8_t* rows, size_t stride, int count) = 0;
};

}  // namespace headrace
