// Bytes of the core as Python sees them: an object with a buffer that cannot be written to.
#pragma once

#include "bind/convert.h"
#include "core/base/byte_buffer.h"

namespace headrace {

struct PySharedBytes {
  SharedBytes bytes;
};

/// The object's bytes, or a copy of a buffer's.
inline SharedBytes shared_bytes(const pybind11::object& data) {
  if (pybind11::isinstance<PySharedBytes>(data)) return data.cast<const PySharedBytes&>().bytes;
  const pybind11::buffer_info info = bytes_of(data.cast<pybind11::buffer>());
  return copy_of(span_of(info));
}

}  // namespace headrace
