// The 13 channels of TextureChannels: tables for one size of image, shared by all threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/geometry.h"

namespace headrace {

inline constexpr int kTextureChannels = 13;
inline constexpr int kRootStarts = 1024;  // intervals of [0, 1] in the table of start values for roots

/// Rows of doubles are padded to multiples of this.
inline constexpr int kTextureLanes = 8;
inline constexpr int texture_padded(int count) { return (count + kTextureLanes - 1) / kTextureLanes * kTextureLanes; }

/// The transform of one length. `radices`: those of its passes, as headrace._recipe.arithmetic.fourier.factors lists
/// them.
struct FourierTablesView {
  int length = 1;
  int passes = 0;
  const int* radices = nullptr;
  const double* cosine = nullptr;  // of 2 pi k / length
  const double* sine = nullptr;
};

/// What the loops read besides pixels. Plain pointers: code for one instruction set instantiates no library templates.
struct TextureView {
  Size size;
  FourierTablesView along_x, along_y;
  const double* linear = nullptr;    // [256]: linear intensities of bytes
  const double* roots = nullptr;     // [kRootStarts + 1]: cube roots, as start values
  const double* luma = nullptr;      // [3][256]: what each byte of R, G and B adds to the luma
  const float* unit = nullptr;       // [256]: byte / 255
  const float* positions = nullptr;  // [3][height][width]: x, y and eccentricity
  const uint8_t* passes = nullptr;   // [2][width][texture_padded(height / 2 + 1)]: 1 where a band passes a frequency
};

/// The layout of a sample's elements, float32: bytes between neighbours along each axis.
struct TextureTarget {
  uint8_t* base = nullptr;
  ptrdiff_t channel_stride = 0, row_stride = 0, pixel_stride = 0;
};

/// Tables that headrace._recipe.arithmetic makes: powers, roots and angles differ between libraries.
struct TextureTables {
  std::vector<double> linear, roots;
  std::vector<double> turns_x, turns_y;  // cosines, then sines, of 2 pi k / width and 2 pi k / height
};

class Texture {
 public:
  /// `bands`: low and high of each, in cycles per pixel. Throws std::invalid_argument if a table has another length.
  Texture(Size size, TextureTables tables, const std::array<double, 4>& bands);

  const TextureView& view() const { return view_; }

  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;

 private:
  void fill_byte_tables();
  void fill_positions();
  void fill_passes(const std::array<double, 4>& bands);

  TextureTables tables_;
  std::vector<int> radices_x_, radices_y_;
  std::vector<double> luma_;
  std::vector<float> unit_, positions_;
  std::vector<uint8_t> passes_;
  TextureView view_;
};

}  // namespace headrace
