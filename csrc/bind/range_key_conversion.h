// Ranges of objects as Python gives them: a column each of objects, offsets, lengths and, perhaps, marks.
#pragma once

#include <optional>
#include <stdexcept>
#include <vector>

#include "bind/convert.h"
#include "core/io/remote/byte_store.h"

namespace headrace {

/// Throws std::out_of_range if the columns differ in length.
inline std::vector<RangeKey> to_range_keys(const Vector<uint64_t>& objects, const Vector<uint64_t>& offsets,
                                           const Vector<uint64_t>& lengths,
                                           const std::optional<Vector<uint64_t>>& marks = std::nullopt) {
  if (marks && marks->size() != objects.size()) throw std::out_of_range("the arrays of the ranges differ in length");
  if (offsets.size() != objects.size() || lengths.size() != objects.size()) {
    throw std::out_of_range("the arrays of the ranges differ in length");
  }
  std::vector<RangeKey> keys;
  for (pybind11::ssize_t i = 0; i < objects.size(); ++i) {
    keys.push_back({objects.at(i), offsets.at(i), lengths.at(i), marks ? marks->at(i) : 0});
  }
  return keys;
}

}  // namespace headrace
