// Converts the step Texture of headrace._recipe.steps. Every function needs the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "core/fuse/sinks/output.h"
#include "core/kernels/textures/texture.h"

namespace headrace {

/// `bands`: two pairs (low, high). `tables`: what headrace._recipe.arithmetic.textures.tables returns for this size.
/// Raises ValueError where their lengths do not fit.
std::shared_ptr<const Texture> to_texture(Size size, const pybind11::handle& bands, const pybind11::handle& tables);

/// Strides of samples whose axes are in the order of `axes`, "CHW" or "HWC". `layout`: the memory order of a batch of
/// such samples, as if the first axis were channels. Raises ValueError for other axes.
OutputStrides texture_strides(Layout layout, const std::string& axes, Size size);

}  // namespace headrace
