// Where the samples that a box of a JPEG needs lie in memory: whole rows and columns of iMCUs, as a decoder writes
// them.
#pragma once

#include <array>
#include <cstddef>

#include "core/base/geometry.h"
#include "core/jpeg/jpeg_header.h"
#include "core/planes/planar_image.h"

namespace headrace {

/// The planes of a box, one behind the other.
struct PlaneLayout {
  PlanarImage image;               // its planes' `data` are null
  std::array<size_t, 3> offset{};  // of each plane
  std::array<int, 3> rows{};       // of samples
  size_t bytes = 0;                // of all planes
  int left = 0, right = 0;         // the pixels to ask of the decoder: the box and what its upsampling looks at
  int first_imcu_row = 0, imcu_rows = 0;

  /// The image whose planes lie at `base`, there or in a copy of them elsewhere.
  PlanarImage at(const uint8_t* base) const;
};

/// Libjpeg's rule for what three components are: red, green and blue, or luma and chroma.
bool holds_rgb(const JpegHeader& header);

/// `header` is plain; `box` lies inside the image.
PlaneLayout plane_layout(const JpegHeader& header, Box box);

}  // namespace headrace
