// Memory of one thread in which the loops make textures of one size.
#pragma once

#include "core/base/aligned_array.h"
#include "core/kernels/textures/texture_loops.h"

namespace headrace {

class TextureScratch {
 public:
  /// Throws std::bad_alloc.
  explicit TextureScratch(Size size);

  /// Where the image is expected: RGBX, rows without gaps.
  uint8_t* pixels() { return pixels_.data(); }
  const TextureScratchView& view() const { return view_; }

  TextureScratch(const TextureScratch&) = delete;
  TextureScratch& operator=(const TextureScratch&) = delete;

 private:
  AlignedArray<uint8_t> pixels_;
  AlignedArray<double> doubles_;
  AlignedArray<float> floats_;
  TextureScratchView view_;
};

}  // namespace headrace
