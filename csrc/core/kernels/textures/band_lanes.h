// An image's parts in two bands of frequency, by the operations of headrace._recipe.arithmetic.textures.bands_of.
// All definitions are internal to the file that includes this header.
#pragma once

#include "core/kernels/textures/fourier_lanes.h"
#include "core/kernels/textures/texture_loops.h"

namespace headrace {
namespace {

typedef float FloatLanes __attribute__((vector_size(kLanes * sizeof(float))));
typedef uint8_t ByteLanes __attribute__((vector_size(kLanes)));
typedef Lanes LooseLanes __attribute__((aligned(8)));  // at any column
typedef FloatLanes LooseFloats __attribute__((aligned(4), may_alias));
typedef ByteLanes LooseBytes __attribute__((aligned(1), may_alias));

/// Transforms of one block of columns or rows at a time.
class Bands {
 public:
  Bands(const TextureView& texture, const TextureScratchView& scratch)
      : texture_(texture),
        scratch_(scratch),
        width_(texture.size.width),
        height_(texture.size.height),
        half_((width_ + 1) / 2),
        kept_(height_ / 2 + 1),
        spectra_stride_(texture_padded(kept_)),
        combined_stride_(texture_padded(width_)),
        real_(scratch.spectra),
        imaginary_(scratch.spectra + ptrdiff_t{width_} * spectra_stride_),
        combined_real_(scratch.combined),
        combined_imaginary_(scratch.combined + ptrdiff_t{height_} * combined_stride_) {
    const int longer = width_ > height_ ? width_ : height_;
    for (int i = 0; i < 4; ++i) {
      Lanes* at = reinterpret_cast<Lanes*>(scratch.lanes) + ptrdiff_t{2 * i} * longer;
      blocks_[i] = {at, at + longer};
    }
    butterfly_scratch_ = reinterpret_cast<Lanes*>(scratch.butterfly);
  }

  void make() const {
    for (int column = 0; column < half_; column += kLanes) columns_to_spectra(column);
    for (int k = 0; k < kept_; k += kLanes) filter_rows(k);
    for (int column = 0; column < width_; column += kLanes) columns_to_bands(column);
  }

 private:
  // Columns `column` and `column + half_` are the real and the imaginary part of one transform.
  void columns_to_spectra(int column) const {
    const LaneArray& block = blocks_[0];
    for (int y = 0; y < height_; ++y) {
      const double* row = scratch_.luma + ptrdiff_t{y} * scratch_.luma_stride + column;
      block.real[y] = *reinterpret_cast<const LooseLanes*>(row);
      block.imaginary[y] = *reinterpret_cast<const LooseLanes*>(row + half_);
    }
    const LaneArray made = fourier_transform(block, blocks_[1], texture_.along_y, butterfly_scratch_);
    for (int k = 0; k < kept_; ++k) {
      const int mirrored = k == 0 ? 0 : height_ - k;
      const Lanes a = made.real[k], b = made.imaginary[k];
      const Lanes a_mirrored = made.real[mirrored], b_mirrored = made.imaginary[mirrored];
      const Lanes left_real = a + a_mirrored, left_imaginary = b - b_mirrored;
      const Lanes right_real = b + b_mirrored, right_imaginary = a_mirrored - a;
      for (int lane = 0; lane < kLanes && column + lane < half_; ++lane) {
        const ptrdiff_t left = ptrdiff_t{column + lane} * spectra_stride_ + k;
        const ptrdiff_t right = left + ptrdiff_t{half_} * spectra_stride_;
        real_[left] = left_real[lane];
        imaginary_[left] = left_imaginary[lane];
        if (column + lane + half_ >= width_) continue;
        real_[right] = right_real[lane];
        imaginary_[right] = right_imaginary[lane];
      }
    }
  }

  // The transforms along the rows for a block of frequencies starting at `k`, and back in each band.
  void filter_rows(int k) const {
    const LaneArray& block = blocks_[0];
    for (int x = 0; x < width_; ++x) {
      block.real[x] = *reinterpret_cast<const Lanes*>(real_ + ptrdiff_t{x} * spectra_stride_ + k);
      block.imaginary[x] = *reinterpret_cast<const Lanes*>(imaginary_ + ptrdiff_t{x} * spectra_stride_ + k);
    }
    const LaneArray spectrum = fourier_transform(block, blocks_[1], texture_.along_x, butterfly_scratch_);
    const LaneArray& spare = spectrum.real == block.real ? blocks_[1] : block;
    // The second band overwrites the spectrum that it is made of.
    const LaneArray first = back(spectrum, 0, k, blocks_[2], blocks_[3]);
    const LaneArray& free = first.real == blocks_[2].real ? blocks_[3] : blocks_[2];
    const LaneArray second = back(spectrum, 1, k, spare, free);
    for (int x = 0; x < width_; ++x) combine(first, second, x, k);
  }

  // The inverse is the transform with both parts swapped, before and after it.
  LaneArray back(const LaneArray& spectrum, int band, int k, const LaneArray& to, const LaneArray& other) const {
    const double scale = 1.0 / (2.0 * height_ * width_);
    const uint8_t* passes = texture_.passes + (ptrdiff_t{band} * width_) * spectra_stride_ + k;
    for (int x = 0; x < width_; ++x) {
      const ByteLanes bytes = *reinterpret_cast<const LooseBytes*>(passes + ptrdiff_t{x} * spectra_stride_);
      const Lanes weight = __builtin_convertvector(bytes, Lanes) * scale;
      to.real[x] = spectrum.imaginary[x] * weight;
      to.imaginary[x] = spectrum.real[x] * weight;
    }
    return fourier_transform(to, other, texture_.along_x, butterfly_scratch_);
  }

  // Combines both bands as the real and the imaginary part of one spectrum of column `x`, whose negative frequencies
  // are the mirrored ones with the opposite sign of i. The parts of `first` and `second` are swapped.
  void combine(const LaneArray& first, const LaneArray& second, int x, int k) const {
    const Lanes real = first.imaginary[x] - second.real[x], imaginary = first.real[x] + second.imaginary[x];
    const Lanes mirrored_real = first.imaginary[x] + second.real[x];
    const Lanes mirrored_imaginary = second.imaginary[x] - first.real[x];
    for (int lane = 0; lane < kLanes && k + lane < kept_; ++lane) {
      const int at = k + lane;
      combined_real_[ptrdiff_t{at} * combined_stride_ + x] = real[lane];
      combined_imaginary_[ptrdiff_t{at} * combined_stride_ + x] = imaginary[lane];
      if (at == 0 || at >= (height_ + 1) / 2) continue;
      const ptrdiff_t mirrored = ptrdiff_t{height_ - at} * combined_stride_ + x;
      combined_real_[mirrored] = mirrored_real[lane];
      combined_imaginary_[mirrored] = mirrored_imaginary[lane];
    }
  }

  void columns_to_bands(int column) const {
    const LaneArray& block = blocks_[0];
    for (int y = 0; y < height_; ++y) {
      const ptrdiff_t at = ptrdiff_t{y} * combined_stride_ + column;
      block.real[y] = *reinterpret_cast<const Lanes*>(combined_imaginary_ + at);
      block.imaginary[y] = *reinterpret_cast<const Lanes*>(combined_real_ + at);
    }
    const LaneArray made = fourier_transform(block, blocks_[1], texture_.along_y, butterfly_scratch_);
    float* to = scratch_.bands + column;
    for (int y = 0; y < height_; ++y, to += combined_stride_) {
      *reinterpret_cast<LooseFloats*>(to) = __builtin_convertvector(made.imaginary[y], FloatLanes);
      *reinterpret_cast<LooseFloats*>(to + ptrdiff_t{height_} * combined_stride_) =
          __builtin_convertvector(made.real[y], FloatLanes);
    }
  }

  const TextureView& texture_;
  const TextureScratchView& scratch_;
  const int width_, height_, half_, kept_, spectra_stride_, combined_stride_;
  double *const real_, *const imaginary_;
  double *const combined_real_, *const combined_imaginary_;
  LaneArray blocks_[4];
  Lanes* butterfly_scratch_;
};

}  // namespace
}  // namespace headrace
