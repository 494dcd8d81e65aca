// Converts Python objects to the core's types. Every function needs the GIL.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>  // include it in every file of this folder: of two casters for one type the linker picks any

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/pipeline/batch/backend.h"

namespace headrace {

/// Converts a headrace._recipe.steps.recipe.Recipe and its element table. `layout`: see to_layout. `max_pixels`: see
/// SampleOptions. `frames`: see OutputStrides; more than one only of planar images. Raises TypeError for a step that
/// the core does not know, ValueError for a value that it does not.
SampleOptions to_sample_options(const pybind11::object& recipe, const pybind11::buffer& lut, const std::string& layout,
                                int64_t max_pixels, const std::string& pass_order, int frames = 1);

/// A filter of headrace._recipe.steps by its name. Raises ValueError for another name.
Filter to_filter(const pybind11::handle& name);

/// A copy of an array's elements.
template <class T>
std::vector<T> to_vector(const pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>& array) {
  return {array.data(), array.data() + array.size()};
}

/// A contiguous array; any other array is copied.
template <class T>
using Vector = pybind11::array_t<T, pybind11::array::c_style>;

/// The elements of an array, not copied: valid as long as it lives.
template <class T>
std::span<const T> span_of(const Vector<T>& array) {
  return {array.data(), static_cast<size_t>(array.size())};
}

/// The bytes of a contiguous buffer, not copied: valid as long as the result lives. Raises ValueError for any other
/// buffer.
pybind11::buffer_info bytes_of(const pybind11::buffer& buffer);
/// The bytes of an object, not copied: valid as long as it lives.
inline std::span<const uint8_t> span_of(const pybind11::bytes& data) {
  const std::string_view view = data;
  return {reinterpret_cast<const uint8_t*>(view.data()), view.size()};
}

/// The bytes of such a buffer.
inline std::span<const uint8_t> span_of(const pybind11::buffer_info& info) {
  return {static_cast<const uint8_t*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)};
}

/// Each function adds its part to the module.
void bind_clips(pybind11::module_& module);
void bind_columns(pybind11::module_& module);
void bind_composed(pybind11::module_& module);
void bind_draws(pybind11::module_& module);
void bind_helpers(pybind11::module_& module);
void bind_http(pybind11::module_& module);
void bind_jpeg(pybind11::module_& module);
void bind_png(pybind11::module_& module);
void bind_memory(pybind11::module_& module);
void bind_mixing(pybind11::module_& module);
void bind_opening(pybind11::module_& module);
void bind_ops(pybind11::module_& module);
void bind_packing(pybind11::module_& module);
void bind_entry_points(pybind11::module_& module);
void bind_pipeline(pybind11::module_& module);
void bind_ranges(pybind11::module_& module);
void bind_remote(pybind11::module_& module);
void bind_caching(pybind11::module_& module);
void bind_recorder(pybind11::module_& module);
void bind_tar(pybind11::module_& module);
void bind_textures(pybind11::module_& module);
void bind_views(pybind11::module_& module);

/// The kernels of this instruction set; null for "". Raises ValueError where the processor lacks it.
const Kernels* named_kernels(const std::string& isa);

/// The layout "planar" or "channels_last". Raises ValueError for any other name.
Layout to_layout(const std::string& name);

/// An element table of three channels, and the layout of outputs of this size with its elements. Valid as long as
/// `buffer` lives.
struct ElementTable {
  ElementTable(const pybind11::buffer& buffer, Size size, Layout layout);

  pybind11::buffer_info info;
  std::span<const uint8_t> entries;
  OutputStrides strides;
};

}  // namespace headrace
