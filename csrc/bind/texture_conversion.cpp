// Converts the step Texture of headrace._recipe.steps.
#include "bind/texture_conversion.h"

#include <array>
#include <utility>

#include "bind/convert.h"

namespace py = pybind11;

namespace headrace {

std::shared_ptr<const Texture> to_texture(Size size, const py::handle& bands, const py::handle& tables) {
  using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;
  const auto [low, high] = py::cast<std::array<std::pair<double, double>, 2>>(bands);
  const auto [linear, roots, turns_x, turns_y] = py::cast<std::array<Doubles, 4>>(tables);
  TextureTables made{to_vector<double>(linear), to_vector<double>(roots), to_vector<double>(turns_x),
                     to_vector<double>(turns_y)};
  return std::make_shared<const Texture>(size, std::move(made),
                                         std::array{low.first, low.second, high.first, high.second});
}

OutputStrides texture_strides(Layout layout, const std::string& axes, Size size) {
  constexpr int kElement = sizeof(float);
  if (axes == "CHW") return strides_of(layout, kTextureChannels, size, kElement);
  if (axes != "HWC") throw py::value_error("layout must be 'CHW' or 'HWC', not '" + axes + "'");
  const OutputStrides as_given = strides_of(layout, size.height, {kTextureChannels, size.width}, kElement);
  return {kElement,
          kTextureChannels,
          as_given.pixel_stride,
          as_given.channel_stride,
          as_given.row_stride,
          as_given.sample_bytes,
          true};
}

}  // namespace headrace
