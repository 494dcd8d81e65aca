// Turns Python objects into the core's types; every function needs the GIL.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>  // in every file of this folder: one caster for each type, or the linker picks one of two

#include <string>
#include <vector>

#include "core/batch/backend.h"

namespace headrace {

/// A headrace.recipe.Recipe and its element table -> their native twins. Throws TypeError for a step that the core does
/// not know. `layout`: see to_layout.
SampleOptions to_sample_options(const pybind11::object& recipe, const pybind11::buffer& lut, const std::string& layout,
                                int64_t max_pixels, const std::string& pass_order);

/// A contiguous array's elements, copied.
template <class T>
std::vector<T> to_vector(const pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>& array) {
  return {array.data(), array.data() + array.size()};
}

/// The bytes of any contiguous buffer, not copied: valid while `info` lives.
pybind11::buffer_info bytes_of(const pybind11::buffer& buffer);

void bind_jpeg(pybind11::module_& module);
void bind_ops(pybind11::module_& module);
void bind_pipeline(pybind11::module_& module);
void bind_recorder(pybind11::module_& module);

/// "planar" or "channels_last"; raises ValueError for anything else.
Layout to_layout(const std::string& name);

/// A table of three channels, and how outputs of this size lie in memory with its elements. Valid while `buffer` is.
struct ElementTable {
  ElementTable(const pybind11::buffer& buffer, Size size, Layout layout);

  pybind11::buffer_info info;
  std::span<const uint8_t> entries;
  OutputStrides strides;
};

}  // namespace headrace
