// PNGs are decoded to the samples that they contain, or left to Pillow with a reason.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/png/png_decoder.h"
#include "core/png/png_header.h"
#include "support/png_samples.h"

using namespace headrace;

namespace {

const PngBytes kTwoRows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 10, 20, 30, 1, 1, 1, 2, 2, 2};
const PngBytes kDecoded = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 11, 21, 31, 13, 23, 33};

std::string reason_of(const PngBytes& bytes) {
  const PngHeader header = parse_png_header(bytes);
  return header.not_plain == nullptr ? "" : header.not_plain;
}

std::string refused(const PngBytes& bytes, PngWanted wanted = PngWanted::kRgb) {
  try {
    PngDecoder().decode(parse_png_header(bytes), wanted);
  } catch (const NeedsPillow& verdict) {
    return verdict.what();
  }
  return "";
}

PngBytes samples_of(const PngBytes& bytes) {
  const PngHeader header = parse_png_header(bytes);
  REQUIRE(header.not_plain == nullptr);
  const auto pixels = static_cast<size_t>(header.size.width) * static_cast<size_t>(header.size.height);
  PngBytes made(pixels * static_cast<size_t>(png_pixel_bytes(header)));
  PngDecoder().write_samples(header, made.data());
  return made;
}

/// The R, G and B of all pixels.
PngBytes colours_of(const PngBytes& bytes) {
  PngDecoder decoder;
  const PngHeader header = parse_png_header(bytes);
  const RawImage image = decoder.decode(header, PngWanted::kRgb);
  PngBytes made;
  for (int y = 0; y < image.size.height; ++y) {
    for (int x = 0; x < image.size.width; ++x) {
      const uint8_t* at = image.data + y * image.row_stride + x * image.pixel_stride;
      for (int c = 0; c < 3; ++c) made.push_back(at[image.channels == 1 ? 0 : c * image.channel_stride]);
    }
  }
  return made;
}

}  // namespace

TEST_CASE("samples of 8 bits") {
  const PngBytes file = png_of({.rows = kTwoRows});
  CHECK(samples_of(file) == kDecoded);
  CHECK(colours_of(file) == kDecoded);
  CHECK(parse_png_header(file).data_end == file.size() - 16);
}

TEST_CASE("samples of fewer bits") {
  const PngBytes gray = png_of({.width = 3, .height = 1, .depth = 2, .colour = 0, .rows = {0, 0b00011100}});
  CHECK(samples_of(gray) == PngBytes{0, 85, 255});
  const PngBytes bits = png_of({.width = 9, .height = 1, .depth = 1, .colour = 0, .rows = {0, 0xa0, 0x80}});
  CHECK(samples_of(bits) == PngBytes{255, 0, 255, 0, 0, 0, 0, 0, 255});
  CHECK(refused(bits, PngWanted::kIndices) == "palette indices are wanted");
}

TEST_CASE("samples of 16 bits") {
  const PngBytes gray = png_of({.width = 3, .height = 1, .depth = 16, .colour = 0, .rows = {0, 0, 9, 1, 2, 255, 0}});
  CHECK(samples_of(gray) == PngBytes{9, 0, 2, 1, 0, 255});
  CHECK(colours_of(gray) == PngBytes{9, 9, 9, 255, 255, 255, 255, 255, 255});
  const PngBytes alpha = png_of({.width = 1, .height = 1, .depth = 16, .colour = 4, .rows = {0, 5, 6, 7, 8}});
  CHECK(samples_of(alpha) == PngBytes{5, 5, 5, 7});
  const PngBytes four =
      png_of({.width = 1, .height = 1, .depth = 16, .colour = 6, .rows = {0, 1, 2, 3, 4, 5, 6, 7, 8}});
  CHECK(samples_of(four) == PngBytes{1, 3, 5, 7});
  CHECK(colours_of(four) == PngBytes{1, 3, 5});
}

TEST_CASE("palettes") {
  const PngBytes palette = {1, 2, 3, 40, 50, 60};
  const PngBytes file = png_of({.width = 2, .height = 1, .colour = 3, .rows = {0, 1, 0}, .palette = palette});
  CHECK(samples_of(file) == PngBytes{1, 0});
  CHECK(colours_of(file) == PngBytes{40, 50, 60, 1, 2, 3});
  CHECK(refused(png_of({.width = 2, .height = 1, .colour = 3, .rows = {0, 2, 0}, .palette = palette})) ==
        "PNG with an index beyond its palette");
  CHECK(reason_of(png_of({.width = 2, .height = 1, .colour = 3, .rows = {0, 1, 0}})) == "PNG without its palette");
}

TEST_CASE("files that Pillow decodes") {
  CHECK(reason_of({}) == "not a PNG");
  CHECK(reason_of(png_of({.interlaced = 1, .rows = kTwoRows})) == "interlaced PNG");
  CHECK(reason_of(png_of({.depth = 4, .rows = kTwoRows})) == "PNG of an unknown bit depth");
  CHECK(reason_of(png_of({.colour = 5, .rows = kTwoRows})) == "PNG of an unknown colour type");
  CHECK(reason_of(png_of({.width = 0, .rows = kTwoRows})) == "PNG without pixels");
  CHECK(reason_of(png_of({.width = 1 << 20, .height = 1 << 20, .rows = kTwoRows})) == "huge PNG");
  CHECK(reason_of(png_of({.rows = kTwoRows, .before = "acTL"})) == "PNG with chunks of other kinds");
  CHECK(reason_of(png_of({.rows = kTwoRows, .after = "PLTE"})) == "PNG with chunks of other kinds");
  CHECK(reason_of(png_of({.rows = kTwoRows, .before = "gAMA"})) == "PNG with a short chunk");
  CHECK(reason_of(png_of({.rows = kTwoRows, .before = "bKGD", .after = "tIME"})).empty());
}

TEST_CASE("no cut-off file is plain") {
  const PngBytes whole = png_of({.rows = kTwoRows, .before = "bKGD"});
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(reason_of({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)}).empty());
  }
  for (size_t at = 8; at < whole.size(); ++at) {
    PngBytes other = whole;
    other[at] ^= 1;
    CHECK_FALSE(reason_of(other).empty());
  }
}

TEST_CASE("data of another length, and unknown filters") {
  PngBytes rows = kTwoRows;
  rows.push_back(0);
  CHECK(refused(png_of({.rows = rows})) == "PNG with damaged data");
  rows.resize(19);
  CHECK(refused(png_of({.rows = rows})) == "PNG with damaged data");
  rows = kTwoRows;
  rows[10] = 5;
  CHECK(refused(png_of({.rows = rows})) == "PNG with an unknown filter");
}
