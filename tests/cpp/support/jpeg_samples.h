// Makes small JPEGs of every kind for the tests, and decodes them whole with libjpeg's simplest calls: the reference.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/geometry.h"
#include "core/jpeg/idct/block_loops.h"
#include "core/jpeg/sequential/jpeg_header.h"

namespace headrace::test {

struct JpegOptions {
  int width = 37, height = 29;
  int components = 3;  // 1, 3 or 4
  std::array<int, 3> h{1, 1, 1}, v{1, 1, 1};
  bool progressive = false;
  bool rgb = false;             // components R, G, B instead of Y, Cb, Cr
  bool optimal_tables = false;  // Huffman tables made for this image
  bool interleaved = true;      // false: a scan for each component
  int restart_rows = 0;         // restart interval in rows of MCUs
  int quality = 90;
};

struct Sampling {
  std::array<int, 3> h, v;
};

/// The usual ones, and rare ones that libjpeg supports.
inline constexpr Sampling kSamplings[] = {{{1, 1, 1}, {1, 1, 1}}, {{2, 1, 1}, {1, 1, 1}}, {{2, 1, 1}, {2, 1, 1}},
                                          {{1, 1, 1}, {2, 1, 1}}, {{4, 1, 1}, {1, 1, 1}}, {{1, 1, 1}, {4, 1, 1}},
                                          {{2, 2, 1}, {2, 1, 2}}, {{4, 2, 1}, {1, 1, 1}}, {{1, 2, 1}, {1, 2, 1}},
                                          {{3, 1, 1}, {2, 1, 1}}, {{4, 1, 1}, {2, 1, 1}}};

std::vector<uint8_t> make_jpeg(const JpegOptions& options);

/// A gray JPEG of `width` * `height` blocks with these coefficients, 64 values each (DC: -1023 to 1023, all others
/// too), in natural order, as `quant` is.
std::vector<uint8_t> make_jpeg_of_blocks(int width, int height, const std::vector<int16_t>& blocks,
                                         const uint16_t (&quant)[64]);

/// RGBX, rows without gaps. Pillow's settings: ISLOW, fancy upsampling.
std::vector<uint8_t> decode_whole(const std::vector<uint8_t>& jpeg);

/// The pixels of a box of what `decode_whole` returned for an image of this width.
std::vector<uint8_t> part_of(const std::vector<uint8_t>& whole, int width, Box box);

/// Keeps the rows of a box, without gaps.
struct BoxSink : RowSink {
  explicit BoxSink(int box_width = 0) : width(box_width) {}
  void push(const uint8_t* rows, size_t stride, int count) override;
  int width;
  std::vector<uint8_t> pixels;
};

/// The same of a box, by a JpegDecoder with these loops (nullptr: libjpeg-turbo's).
std::vector<uint8_t> decode_box(const BlockLoops* loops, const std::vector<uint8_t>& jpeg, const JpegHeader& header,
                                Box box);

/// `jpeg` with a segment (marker, length and body) inserted after SOI.
std::vector<uint8_t> with_segment(const std::vector<uint8_t>& jpeg, int marker, const std::string& body);

/// Where the first segment with this marker begins (its FF); fails the test if there is none.
size_t find_marker(const std::vector<uint8_t>& jpeg, int marker);

}  // namespace headrace::test
