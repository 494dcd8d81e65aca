// The coefficients of some rows of MCUs, while the scans of a file fill them in.
#include "core/jpeg/progressive/coefficient_strip.h"

#include <cstring>

namespace headrace {
namespace {

constexpr size_t kBlockGroup = 4;  // BlockLoops::invert reads whole groups
constexpr size_t kValues = 64;

size_t values_of_line(const BlockGrid& grid) {
  const size_t blocks = static_cast<size_t>(grid.last_column - grid.first_column + 1);
  return (blocks + kBlockGroup - 1) / kBlockGroup * kBlockGroup * kValues;
}

}  // namespace

size_t StripLines::bytes_of_line(const BlockGrid& grid) { return values_of_line(grid) * sizeof(int16_t); }

void StripLines::begin(const BlockGrid& grid, int lines) {
  width_ = static_cast<size_t>(grid.padded);
  stride_ = values_of_line(grid);
  masks_.resize(width_ * static_cast<size_t>(lines));
  coefficients_.resize(stride_ * static_cast<size_t>(lines));
}

void StripLines::clear(int first, int count, bool wanted) {
  first_ = first;
  wanted_ = wanted;
  std::memset(masks_.data(), 0, width_ * static_cast<size_t>(count) * sizeof(uint64_t));
  if (wanted) std::memset(coefficients_.data(), 0, stride_ * static_cast<size_t>(count) * sizeof(int16_t));
}

}  // namespace headrace
