// Tables of textures, as the C++ library's functions give them.
#pragma once

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/kernels/textures/texture.h"

namespace headrace::test {

inline constexpr std::array<double, 4> kBands = {1.0 / 32, 1.0 / 8, 1.0 / 8, 1.0 / 2};

inline std::vector<double> turns(int length) {
  std::vector<double> made;
  for (const double quarter : {0.0, 0.25}) {
    for (int k = 0; k < length; ++k) {
      made.push_back(std::cos(2 * std::numbers::pi * (static_cast<double>(k) / length - quarter)));
    }
  }
  return made;
}

inline TextureTables tables(Size size) {
  TextureTables made;
  for (int i = 0; i < 256; ++i) {
    made.linear.push_back(i <= 10 ? i / 255.0 / 12.92 : std::pow((i / 255.0 + 0.055) / 1.055, 2.4));
  }
  for (int i = 0; i <= kRootStarts; ++i) made.roots.push_back(std::cbrt((i + 0.5) / kRootStarts));
  made.turns_x = turns(size.width);
  made.turns_y = turns(size.height);
  return made;
}

}  // namespace headrace::test
