// The memory layout of the samples that a box of a JPEG needs: whole rows and columns of iMCUs, as a decoder writes
// them.
#pragma once

#include <array>
#include <cstddef>

#include "core/base/geometry.h"
#include "core/jpeg/planes/planar_image.h"
#include "core/jpeg/sequential/jpeg_header.h"

namespace headrace {

/// The planes of a box, one after another.
struct PlaneLayout {
  PlanarImage image;               // its planes' `data` are null
  std::array<size_t, 3> offset{};  // of each plane
  std::array<int, 3> rows{};       // of samples
  size_t bytes = 0;                // of all planes
  int left = 0, right = 0;         // columns to decode: the box and the margin for upsampling
  int first_imcu_row = 0, imcu_rows = 0;

  /// The image with its planes at `base`, which is the decoder's memory or a copy of it.
  PlanarImage at(const uint8_t* base) const;
};

/// Whether the components are red, green and blue, by libjpeg's rule. If not, three are luma and chroma.
bool holds_rgb(const JpegHeader& header);

/// The layout for a box inside the image. `header` is plain.
PlaneLayout plane_layout(const JpegHeader& header, Box box);

}  // namespace headrace
