// Decodes plain PNGs: all rows at once by libdeflate, then row by row by loops of our own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/byte_buffer.h"
#include "core/io/source/blob.h"
#include "core/png/png_header.h"

struct libdeflate_decompressor;

namespace headrace {

/// Which bytes a program wants of a file.
enum class PngWanted : uint8_t {
  kRgb,      // those of convert("RGB") or convert("L"): R, G, B or gray
  kIndices,  // palette indices, or gray levels of at most 8 bits
};

/// Each thread has its own, which reuses its memory.
class PngDecoder {
 public:
  PngDecoder();
  ~PngDecoder();
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  /// The pixels, valid until the next call; they are those of Pillow. `header`: parse_png_header(data) with not_plain
  /// == nullptr. Throws NeedsPillow where the data are damaged, or the file has not what is wanted.
  RawImage decode(const PngHeader& header, PngWanted wanted);

  /// Writes the samples as Pillow's image of the file has them in its own mode, without gaps: one byte each, the higher
  /// one of two; of 16-bit gray two bytes, the lower one first; 255 for 1 in a gray image of one bit; as RGBA if gray
  /// of 16 bits has alpha. `out`: png_bytes(header) bytes. Throws NeedsPillow.
  void write_samples(const PngHeader& header, uint8_t* out);

  /// The same, but samples of 16 bits have both bytes, the lower one first, in images of all kinds. `out`:
  /// png_whole_bytes(header) bytes for each pixel.
  void write_whole_samples(const PngHeader& header, uint8_t* out);

 private:
  struct Free {
    void operator()(libdeflate_decompressor* one) const;
  };

  /// Fills rows_ with the file's rows, each after the byte of its filter.
  void inflate(const PngHeader& header);
  /// One byte for each sample of less than 8 bits, in samples_: the indices of a palette, or gray levels.
  void unpack(const PngHeader& header);
  /// The colours of palette indices.
  RawImage colour(const PngHeader& header, const RawImage& indices);
  /// Makes the first byte of each 16-bit gray level the level, at most 255, as Pillow's convert() does.
  void clip(const PngHeader& header);

  std::unique_ptr<libdeflate_decompressor, Free> inflater_;
  ByteBuffer joined_, rows_, samples_, coloured_;
};

/// Bytes of a pixel of Pillow's image of a file.
int png_pixel_bytes(const PngHeader& header);

/// Bytes of a pixel with whole samples.
inline int png_whole_bytes(const PngHeader& header) { return header.channels() * (header.depth == 16 ? 2 : 1); }

}  // namespace headrace
