// Sources of a tile's resize. One source checks every pixel for rare cases: padding, mirroring or gray before a resize,
// unusual samplings. The others skip these checks.
#pragma once

#include "gpu/kernel/sample_job.h"

namespace headrace {

/// Integers from `begin` up to, not including, `end`.
struct IntRange {
  int begin = 0, end = 0;
  HEADRACE_HD int size() const { return end - begin; }
};

/// The pixel at (u, v) of the resize's input, in all cases.
class AnySource {
 public:
  HEADRACE_HD explicit AnySource(const SampleJob& job) : job_(job) {}
  HEADRACE_HD uint32_t operator()(int u, int v) const {
    const int x = job_.first.column(u), y = job_.first.row(v);
    return job_.first.gray_if_needed(x < 0 || y < 0 ? job_.first.fill : pixel_at(job_.image, x, y));
  }

 private:
  const SampleJob& job_;
};

/// AnySource for luma and chroma without padding, flip or gray: upsampled() and rgb_of_ycc(), with work that is common
/// to all pixels done once. Positions count the samples that are in memory.
template <Upsampling kChroma>
class YccSource {
  static_assert(kChroma == Upsampling::kNone || kChroma == Upsampling::kH2V2);

 public:
  HEADRACE_HD explicit YccSource(const SampleJob& job)
      : luma_(job.image.plane[0].data),
        cb_(job.image.plane[1].data),
        cr_(job.image.plane[2].data),
        luma_stride_(job.image.plane[0].stride),
        chroma_stride_(job.image.plane[1].stride),
        x_(job.first.x.begin - job.image.plane[0].x0),
        y_(job.first.y.begin - job.image.plane[0].y0),
        least_x_(-job.image.plane[1].x0),
        least_y_(-job.image.plane[1].y0),
        most_x_(job.image.plane[1].width - 1 - job.image.plane[1].x0),
        most_y_(job.image.plane[1].height - 1 - job.image.plane[1].y0) {}

  HEADRACE_HD uint32_t operator()(int u, int v) const {
    const int x = x_ + u, y = y_ + v;
    const int value = luma_[y * luma_stride_ + x];
    if constexpr (kChroma == Upsampling::kNone) {
      const int at = y * chroma_stride_ + x;
      return rgb_of_ycc(value, cb_[at], cr_[at]);
    } else {
      const bool odd = x & 1;
      const int near_x = x >> 1, near_y = y >> 1;
      const int far_x = clamped(odd ? near_x + 1 : near_x - 1, least_x_, most_x_);
      const int far_y = clamped(y & 1 ? near_y + 1 : near_y - 1, least_y_, most_y_);
      const int row = near_y * chroma_stride_, other = far_y * chroma_stride_, half = odd ? 7 : 8;
      const auto sample = [&](const uint8_t* plane) {
        const int near = 3 * plane[row + near_x] + plane[other + near_x];
        const int far = 3 * plane[row + far_x] + plane[other + far_x];
        return (3 * near + far + half) >> 4;
      };
      return rgb_of_ycc(value, sample(cb_), sample(cr_));
    }
  }

 private:
  HEADRACE_HD static int clamped(int value, int least, int most) {
    return value < least ? least : value > most ? most : value;
  }

  const uint8_t *luma_, *cb_, *cr_;
  int32_t luma_stride_, chroma_stride_, x_, y_, least_x_, least_y_, most_x_, most_y_;
};

/// Whether columns `u` and rows `v` of a take show the image without padding, flip or gray.
HEADRACE_HD inline bool taken_as_it_is(const TakeMap& take, IntRange u, IntRange v) {
  return !take.x.flip && !take.y.flip && !take.gray && take.x.inside(u.begin, u.end) && take.y.inside(v.begin, v.end);
}

/// Whether offsets to a plane's samples up to row `rows` fit 32 bits.
HEADRACE_HD inline bool counts_in_32_bits(const Plane& plane, int rows) {
  return static_cast<int64_t>(rows - plane.y0) * plane.stride <= INT32_MAX;
}

/// Calls visit(source) with the fastest source that supports columns `u` and rows `v`.
template <class Visit>
HEADRACE_HD void with_source(const SampleJob& job, IntRange u, IntRange v, Visit visit) {
  const Plane* plane = job.image.plane;
  const bool plain = job.image.colour == Colour::kYcc && plane[0].upsampling == Upsampling::kNone &&
                     plane[1].upsampling == plane[2].upsampling && taken_as_it_is(job.first, u, v) &&
                     counts_in_32_bits(plane[0], job.first.y.begin + v.end);
  if (plain && plane[1].upsampling == Upsampling::kH2V2) {
    visit(YccSource<Upsampling::kH2V2>(job));
  } else if (plain && plane[1].upsampling == Upsampling::kNone) {
    visit(YccSource<Upsampling::kNone>(job));
  } else {
    visit(AnySource(job));
  }
}

}  // namespace headrace
