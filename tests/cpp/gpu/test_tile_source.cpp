// The plain sources of a tile's pixels give the same pixels as the general one, and are used only where they apply.
#include <doctest/doctest.h>

#include <type_traits>

#include "core/jpeg/planes/plane_decoder.h"
#include "gpu/kernel/tile_source.h"
#include "support/jpeg_samples.h"

using namespace headrace;
using namespace headrace::test;

namespace {

struct Planes {
  SampleJob job;
  std::vector<uint8_t> samples;

  // The planes of the box, and a take of all of it.
  Planes(Size size, int chroma_factor, Box box) {
    JpegOptions options;
    options.width = size.width;
    options.height = size.height;
    options.h = options.v = {chroma_factor, 1, 1};
    const std::vector<uint8_t> jpeg = make_jpeg(options);
    const JpegHeader header = parse_jpeg_header(jpeg);
    const PlaneLayout layout = plane_layout(header, box);
    samples.resize(layout.bytes);  // of exactly this size, so that ASan reports an overrun
    PlaneDecoder().decode(jpeg, header, layout, samples.data());
    job.image = layout.at(samples.data());
    job.first.x = {box.x, box.width, size.width};
    job.first.y = {box.y, box.height, size.height};
  }
};

template <class Source>
constexpr bool kGeneral = std::is_same_v<Source, AnySource>;

bool is_general(const SampleJob& job, IntRange u, IntRange v) {
  bool general = false;
  with_source(job, u, v, [&](auto source) { general = kGeneral<decltype(source)>; });
  return general;
}

}  // namespace

TEST_CASE("luma and chroma taken as they are: the plain source has the general one's pixels") {
  for (const int factor : {1, 2}) {
    for (const Size size : {Size{40, 33}, Size{17, 16}, Size{5, 50}, Size{64, 7}}) {
      for (const Box box : {whole_image(size), Box{1, 2, size.width - 1, size.height - 3},
                            Box{size.width - 2, size.height - 3, 2, 3}, Box{size.width / 2, 1, 1, 1}}) {
        CAPTURE(factor);
        CAPTURE(size.width);
        CAPTURE(box.x);
        const Planes planes(size, factor, box);
        const AnySource general(planes.job);
        int differing = 0, plain = 0;
        with_source(planes.job, {0, box.width}, {0, box.height}, [&](auto source) {
          plain += !kGeneral<decltype(source)>;
          for (int v = 0; v < box.height; ++v) {
            for (int u = 0; u < box.width; ++u) differing += source(u, v) != general(u, v);
          }
        });
        CHECK(plain == 1);
        CHECK(differing == 0);
      }
    }
  }
}

TEST_CASE("whatever is done before a resize, and other images, are for the general source") {
  const Planes planes({40, 30}, 2, {4, 4, 20, 20});
  const IntRange all{0, 20};
  CHECK_FALSE(is_general(planes.job, all, all));
  SampleJob job = planes.job;
  job.first.gray = true;
  CHECK(is_general(job, all, all));
  for (TakeAxis TakeMap::* axis : {&TakeMap::x, &TakeMap::y}) {
    job = planes.job;
    (job.first.*axis).flip = true;
    CHECK(is_general(job, all, all));
    job = planes.job;
    (job.first.*axis).begin = -1;
    CHECK(is_general(job, all, all));
    CHECK_FALSE(is_general(job, {1, 20}, {1, 20}));
    job = planes.job;
    (job.first.*axis).begin = 20;  // beyond the image at one end, at least for rows
    CHECK(is_general(job, {0, 21}, {0, 21}));
  }
  job = planes.job;
  job.image.colour = Colour::kRgb;
  CHECK(is_general(job, all, all));
  job = planes.job;
  job.image.plane[0].stride = INT32_MAX / 20;  // the row after the last is sample 24 * stride
  CHECK(is_general(job, all, all));
  job = planes.job;
  job.image.plane[2].upsampling = Upsampling::kH2V1;
  CHECK(is_general(job, all, all));
}

TEST_CASE("where a window is inside the image, what it shows needs no search") {
  for (const bool flip : {false, true}) {
    for (int begin = -8; begin <= 12; ++begin) {
      const TakeAxis axis{begin, 7, 10, flip};
      for (int from = 0; from < 7; ++from) {
        for (int to = from + 1; to <= 7; ++to) {
          bool inside = true;
          for (int i = from; i < to; ++i) inside = inside && axis.at(i, PadMode::kConstant) >= 0;
          CHECK(axis.inside(from, to) == inside);
        }
      }
    }
  }
}
