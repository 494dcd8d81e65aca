// Sampling factors, margins and rounding to iMCUs.
#include "core/jpeg/planes/plane_layout.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr int kBlock = 8;  // samples along the edge of a DCT block

Upsampling upsampling(int factor_x, int factor_y, int width) {
  if (factor_x == 1 && factor_y == 1) return Upsampling::kNone;
  if (factor_x == 1 && factor_y == 2) return Upsampling::kH1V2;
  if (factor_x == 2 && factor_y <= 2 && width > 2) return factor_y == 1 ? Upsampling::kH2V1 : Upsampling::kH2V2;
  return Upsampling::kReplicate;
}

}  // namespace

PlanarImage PlaneLayout::at(const uint8_t* base) const {
  PlanarImage placed = image;
  for (size_t i = 0; i < offset.size(); ++i) placed.plane[i].data = base + offset[i];
  return placed;
}

bool holds_rgb(const JpegHeader& header) {
  if (header.components != 3 || header.jfif) return false;
  if (header.adobe_transform >= 0) return header.adobe_transform == 0;
  return header.component[0].id == 'R' && header.component[1].id == 'G' && header.component[2].id == 'B';
}

PlaneLayout plane_layout(const JpegHeader& header, Box box) {
  PlaneLayout layout;
  PlanarImage& image = layout.image;
  const bool gray = header.components == 1;
  image.colour = gray ? Colour::kGray : holds_rgb(header) ? Colour::kRgb : Colour::kYcc;
  image.width = header.size.width;
  image.height = header.size.height;
  int max_h = 1, max_v = 1;
  for (int i = 0; i < header.components; ++i) {
    max_h = std::max<int>(max_h, header.component[static_cast<size_t>(i)].h);
    max_v = std::max<int>(max_v, header.component[static_cast<size_t>(i)].v);
  }

  // Fancy upsampling reads the samples next to the box.
  layout.left = std::max(box.x - 1, 0);
  layout.right = std::min(box.x + box.width + 1, image.width);
  const int top = std::max(box.y - 1, 0), bottom = std::min(box.y + box.height + 1, image.height);
  // In an image of one component an MCU is one block, whatever the sampling factors; but rows of iMCUs depend on them.
  const int unit_x = gray ? kBlock : kBlock * max_h, unit_y = kBlock * max_v;
  const int first_column = layout.left / unit_x, columns = (layout.right - 1) / unit_x + 1 - first_column;
  layout.first_imcu_row = gray && max_v > 1 ? 0 : top / unit_y;  // libjpeg counts the rows of these differently
  layout.imcu_rows = (bottom - 1) / unit_y + 1 - layout.first_imcu_row;

  for (size_t i = 0; i < static_cast<size_t>(header.components); ++i) {
    const JpegComponent& component = header.component[i];
    Plane& plane = image.plane[i];
    const int sample_columns = gray ? kBlock : kBlock * component.h, sample_rows = kBlock * component.v;
    plane.stride = columns * sample_columns;
    plane.x0 = first_column * sample_columns;
    plane.y0 = layout.first_imcu_row * sample_rows;
    plane.factor_x = gray ? 1 : max_h / component.h;
    plane.factor_y = gray ? 1 : max_v / component.v;
    plane.width = divide_up(image.width, plane.factor_x);
    plane.height = divide_up(image.height, plane.factor_y);
    plane.upsampling = upsampling(plane.factor_x, plane.factor_y, plane.width);
    layout.rows[i] = layout.imcu_rows * sample_rows;
    layout.offset[i] = layout.bytes;
    layout.bytes += static_cast<size_t>(plane.stride) * static_cast<size_t>(layout.rows[i]);
  }
  return layout;
}

}  // namespace headrace
