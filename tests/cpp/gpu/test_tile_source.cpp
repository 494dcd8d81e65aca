// The plain sources of a tile's pixels give the same pixels as the general one, and are used only where they apply.
#include <doctest/doctest.h>

#include <type_traits>

#include "core/jpeg/decode/plane_decoder.h"
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
    PlaneDecoder(nullptr).decode(jpeg, header, layout, samples.data());
    job.image = layout.at(samples.data());
    job.first.x = {box.x, box.width, size.width};
    job.first.y = {box.y, box.height, size.height};
  }
};

bool is_general(const SampleJob& job, IntRange u, IntRange v) {
  bool general = false;
  with_source(job, u, v, [&](auto source) { general = std::is_same_v<decltype(source), AnySource>; });
  return general;
}

// How many pixels of the columns and rows a source, whose cells cover them, makes otherwise than the general one.
template <class Source>
int differing(const SampleJob& job, const Source& source, IntRange u, IntRange v) {
  const AnySource general(job);
  int count = 0, made = 0;
  for (int top = source.cell_y(v.begin); top < v.end; top += Source::kEdge) {
    for (int left = source.cell_x(u.begin); left < u.end; left += Source::kEdge) {
      source.cell(left, top, [&](int i, int j, uint32_t pixel) {
        const int x = left + i, y = top + j;
        if (x < u.begin || x >= u.end || y < v.begin || y >= v.end) return;
        ++made;
        general.cell(x, y, [&](int, int, uint32_t expected) { count += pixel != expected; });
      });
    }
  }
  return count + u.size() * v.size() - made;
}

}  // namespace

TEST_CASE("luma and chroma taken as they are: the plain source has the general one's pixels") {
  for (const int factor : {1, 2}) {
    for (const Size size : {Size{40, 33}, Size{17, 16}, Size{5, 50}, Size{64, 7}}) {
      for (const Box box : {whole_image(size), Box{1, 2, size.width - 1, size.height - 3},
                            Box{size.width - 2, size.height - 3, 2, 3}, Box{size.width / 2, 1, 1, 1}}) {
        const Planes planes(size, factor, box);
        for (const int cut : {0, 1, 2}) {  // from every side: cells begin inside and outside
          const IntRange u{cut, box.width - cut}, v{cut / 2, box.height - cut};
          if (u.size() <= 0 || v.size() <= 0) continue;
          CAPTURE(factor);
          CAPTURE(size.width);
          CAPTURE(box.x);
          CAPTURE(cut);
          CHECK_FALSE(is_general(planes.job, u, v));
          with_source(planes.job, u, v, [&](const auto& source) { CHECK(differing(planes.job, source, u, v) == 0); });
        }
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
