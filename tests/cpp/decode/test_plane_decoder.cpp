// Planes: the pixels made from them equal a full decode by libjpeg, for every box, sampling and coding.
#include <doctest/doctest.h>

#include <deque>
#include <random>

#include "core/base/error.h"
#include "core/jpeg/decode/plane_decoder.h"
#include "support/block_sets.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;
using Bytes = std::vector<uint8_t>;

namespace {

std::mt19937 random_numbers(11);

int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_numbers); }

/// The number of pixels of the box that differ from the whole image's.
int differing(PlaneDecoder& decoder, const Bytes& jpeg, const JpegHeader& header, const Bytes& whole, Box box,
              EntryPoints* entry_points = nullptr) {
  const PlaneLayout layout = plane_layout(header, box);
  Bytes samples(layout.bytes, 0xAA);  // of exactly this size, so that ASan reports an overrun
  decoder.decode(jpeg, header, layout, samples.data(), entry_points);
  const PlanarImage image = layout.at(samples.data());
  int count = 0;
  for (int y = box.y; y < box.y + box.height; ++y) {
    for (int x = box.x; x < box.x + box.width; ++x) {
      const size_t at = (size_t(y) * size_t(header.size.width) + size_t(x)) * kPixelBytes;
      const uint32_t want = pack_rgbx(whole[at], whole[at + 1], whole[at + 2]);
      if (pixel_at(image, x, y) != want) ++count;
    }
  }
  return count;
}

Box random_box(Size size) {
  const int x = between(0, size.width - 1), y = between(0, size.height - 1);
  return {x, y, between(1, size.width - x), between(1, size.height - y)};
}

/// nullptr: those of libjpeg-turbo.
std::vector<const BlockLoops*> all_loops() {
  std::vector<const BlockLoops*> all = block_sets();
  all.push_back(nullptr);
  return all;
}

}  // namespace

TEST_CASE("pixels made from planes are those of a full decode, for every sampling, coding and size") {
  const Size sizes[] = {{37, 29}, {16, 16}, {3, 41}, {50, 2}, {1, 1}, {65, 17}, {200, 90}};
  std::deque<PlaneDecoder> decoders;  // one for all, as a worker has it
  for (const BlockLoops* loops : all_loops()) decoders.emplace_back(loops);
  for (const Sampling& sampling : kSamplings) {
    for (const Size size : sizes) {
      for (int kind = 0; kind < 8; ++kind) {
        JpegOptions options;
        options.width = size.width;
        options.height = size.height;
        options.components = kind == 6 ? 1 : 3;
        options.h = sampling.h;
        options.v = sampling.v;
        options.progressive = kind == 1;
        options.rgb = kind == 2;
        options.interleaved = kind != 3;
        options.restart_rows = kind == 4 ? 1 : 0;
        options.optimal_tables = kind == 5;
        options.quality = kind == 7 ? 5 : 90;
        const Bytes jpeg = make_jpeg(options), whole = decode_whole(jpeg);
        const JpegHeader header = parse_jpeg_header(jpeg);
        REQUIRE(header.not_plain == nullptr);
        CAPTURE(size.width);
        CAPTURE(size.height);
        CAPTURE(sampling.h[0]);
        CAPTURE(sampling.v[0]);
        CAPTURE(kind);
        for (PlaneDecoder& decoder : decoders) CHECK(differing(decoder, jpeg, header, whole, whole_image(size)) == 0);
        for (int i = 0; i < 12; ++i) {
          const Box box = random_box(size);
          CAPTURE(box.x);
          CAPTURE(box.y);
          CAPTURE(box.width);
          CAPTURE(box.height);
          for (PlaneDecoder& decoder : decoders) CHECK(differing(decoder, jpeg, header, whole, box) == 0);
        }
      }
    }
  }
}

// Long enough for rows and pieces side by side, where the processor has lanes.
TEST_CASE("the same in a first epoch, which learns where rows begin, and in a second") {
  const Size size{720, 560};
  std::deque<PlaneDecoder> decoders;
  for (const BlockLoops* loops : all_loops()) decoders.emplace_back(loops);
  for (const Sampling& sampling : kSamplings) {
    for (const bool restarts : {false, true}) {
      const Bytes jpeg = make_jpeg({.width = size.width,
                                    .height = size.height,
                                    .h = sampling.h,
                                    .v = sampling.v,
                                    .restart_rows = restarts ? 1 : 0,
                                    .quality = 97});
      const JpegHeader header = parse_jpeg_header(jpeg);
      const Bytes whole = decode_whole(jpeg);
      for (PlaneDecoder& decoder : decoders) {
        EntryPoints points(size_t{1} << 24);
        for (int epoch = 0; epoch < 6; ++epoch) {
          const Box box = random_box(size);
          CAPTURE(sampling.h[0]);
          CAPTURE(sampling.v[0]);
          CAPTURE(restarts);
          CAPTURE(epoch);
          CHECK(differing(decoder, jpeg, header, whole, box, &points) == 0);
        }
      }
    }
  }
}

TEST_CASE("a box needs few samples") {
  JpegOptions options;
  options.width = options.height = 640;
  options.h = options.v = {2, 1, 1};
  const JpegHeader header = parse_jpeg_header(make_jpeg(options));
  const PlaneLayout layout = plane_layout(header, {100, 200, 30, 40});
  CHECK(layout.left == 99);  // columns 96 to 143, rows 192 to 255
  CHECK(layout.right == 131);
  CHECK(layout.image.plane[0].stride == 48);
  CHECK(layout.image.plane[1].stride == 24);
  CHECK(layout.rows[0] == 64);
  CHECK(layout.bytes == 48 * 64 + 2 * 24 * 32);
}

TEST_CASE("damage goes to Pillow, and the decoder can go on with the next image") {
  for (const BlockLoops* loops : all_loops()) {
    PlaneDecoder decoder(loops);
    Bytes jpeg = make_jpeg({});
    const Bytes whole = decode_whole(jpeg);
    const JpegHeader header = parse_jpeg_header(jpeg);
    Bytes damaged = jpeg;
    for (size_t i = header.scan_begin + 8; i < header.scan_end; ++i) damaged[i] = 0x55;
    const PlaneLayout layout = plane_layout(header, whole_image(header.size));
    Bytes samples(layout.bytes);
    CHECK_THROWS_AS(decoder.decode(damaged, header, layout, samples.data()), NeedsPillow);
    CHECK(differing(decoder, jpeg, header, whole, whole_image(header.size)) == 0);
  }
}
