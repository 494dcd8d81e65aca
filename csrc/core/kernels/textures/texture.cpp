// Makes the tables of TextureChannels that need only + - * / and square roots, in the order of
// headrace._recipe.arithmetic.textures.
#include "core/kernels/textures/texture.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace headrace {
namespace {

// Factor 4 while it divides, then 2, then odd primes in ascending order.
std::vector<int> radices_of(int length) {
  std::vector<int> found;
  for (int radix = 4; length > 1; radix = radix == 4 ? 2 : radix == 2 ? 3 : radix + 2) {
    if (radix != 4 && int64_t{radix} * radix > length) radix = length;  // the remaining factor is a prime
    for (; length % radix == 0; length /= radix) found.push_back(radix);
  }
  return found;
}

FourierTablesView fourier_tables_view(int length, const std::vector<int>& radices, const std::vector<double>& turns) {
  return {length, static_cast<int>(radices.size()), radices.data(), turns.data(), turns.data() + length};
}

}  // namespace

Texture::Texture(Size size, TextureTables tables, const std::array<double, 4>& bands)
    : tables_(std::move(tables)), radices_x_(radices_of(size.width)), radices_y_(radices_of(size.height)) {
  if (size.width < 1 || size.height < 1 || tables_.linear.size() != 256 || tables_.roots.size() != kRootStarts + 1 ||
      tables_.turns_x.size() != 2 * static_cast<size_t>(size.width) ||
      tables_.turns_y.size() != 2 * static_cast<size_t>(size.height)) {
    throw std::invalid_argument("the tables do not fit the size of the texture");
  }
  view_.size = size;
  fill_byte_tables();
  fill_positions();
  fill_passes(bands);
  view_.along_x = fourier_tables_view(size.width, radices_x_, tables_.turns_x);
  view_.along_y = fourier_tables_view(size.height, radices_y_, tables_.turns_y);
  view_.linear = tables_.linear.data();
  view_.roots = tables_.roots.data();
  view_.luma = luma_.data();
  view_.unit = unit_.data();
  view_.positions = positions_.data();
  view_.passes = passes_.data();
}

void Texture::fill_byte_tables() {
  constexpr double kLuma[3] = {0.299, 0.587, 0.114};
  for (int byte = 0; byte < 256; ++byte) unit_.push_back(static_cast<float>(byte / 255.0));
  for (const double weight : kLuma) {
    for (int byte = 0; byte < 256; ++byte) luma_.push_back(byte / 255.0 * weight);
  }
}

void Texture::fill_positions() {
  const auto [width, height] = view_.size;
  const auto position = [](int at, int count) { return (at * 2.0 + 1) / count - 1; };
  const size_t pixels = static_cast<size_t>(width) * static_cast<size_t>(height);
  positions_.resize(3 * pixels);
  float* to = positions_.data();
  for (int row = 0; row < height; ++row) {
    const double y = position(row, height);
    for (int column = 0; column < width; ++column, ++to) {
      const double x = position(column, width);
      to[0] = static_cast<float>(x);
      to[pixels] = static_cast<float>(y);
      to[2 * pixels] = static_cast<float>(std::sqrt((x * x + y * y) / 2));
    }
  }
}

void Texture::fill_passes(const std::array<double, 4>& bands) {
  const auto [width, height] = view_.size;
  const int kept = height / 2 + 1;
  const auto row = static_cast<size_t>(texture_padded(kept));
  passes_.assign(2 * row * static_cast<size_t>(width), 0);
  for (int column = 0; column < width; ++column) {
    const double fx = static_cast<double>(std::min(column, width - column)) / width;
    for (int k = 0; k < kept; ++k) {
      const double fy = static_cast<double>(k) / height, frequency = std::sqrt(fx * fx + fy * fy);
      for (size_t band = 0; band < 2; ++band) {
        const bool passes = bands[2 * band] <= frequency && frequency < bands[2 * band + 1];
        passes_[(band * static_cast<size_t>(width) + static_cast<size_t>(column)) * row + static_cast<size_t>(k)] =
            passes;
      }
    }
  }
}

}  // namespace headrace
