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

/// What is in both. Of ranges that do not meet the end is before the begin.
HEADRACE_HD inline IntRange overlap(IntRange a, IntRange b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/// Pixels that a source makes together, along each axis, at most.
inline constexpr int kMostEdge = 2;

// A source makes cells of kEdge x kEdge pixels. cell_x(u), cell_y(v): the first column, or row, of the cell of pixel
// (u, v). cell(u, v, store): calls store(i, j, pixel) for each pixel (u + i, v + j) of the cell that begins there.

/// The pixel at (u, v) of the resize's input, in all cases.
class AnySource {
 public:
  static constexpr int kEdge = 1;

  HEADRACE_HD explicit AnySource(const SampleJob& job) : job_(job) {}
  HEADRACE_HD int cell_x(int u) const { return u; }
  HEADRACE_HD int cell_y(int v) const { return v; }
  template <class Store>
  HEADRACE_HD void cell(int u, int v, Store store) const {
    const int x = job_.first.column(u), y = job_.first.row(v);
    store(0, 0, job_.first.gray_if_needed(x < 0 || y < 0 ? job_.first.fill : pixel_at(job_.image, x, y)));
  }

 private:
  const SampleJob& job_;
};

/// Luma and chroma of a job without padding, flip or gray. Positions count the samples that are in memory.
struct YccPlanes {
  const uint8_t *luma, *cb, *cr;
  int32_t luma_stride, chroma_stride, x, y;  // x, y: of the pixel (0, 0)

  HEADRACE_HD explicit YccPlanes(const SampleJob& job)
      : luma(job.image.plane[0].data),
        cb(job.image.plane[1].data),
        cr(job.image.plane[2].data),
        luma_stride(job.image.plane[0].stride),
        chroma_stride(job.image.plane[1].stride),
        x(job.first.x.begin - job.image.plane[0].x0),
        y(job.first.y.begin - job.image.plane[0].y0) {}
};

/// AnySource for luma and chroma of the same size, without padding, flip or gray.
class YccSource {
 public:
  static constexpr int kEdge = 1;

  HEADRACE_HD explicit YccSource(const SampleJob& job) : planes_(job) {}
  HEADRACE_HD int cell_x(int u) const { return u; }
  HEADRACE_HD int cell_y(int v) const { return v; }
  template <class Store>
  HEADRACE_HD void cell(int u, int v, Store store) const {
    const int x = planes_.x + u, y = planes_.y + v, at = y * planes_.chroma_stride + x;
    store(0, 0, rgb_of_ycc(planes_.luma[y * planes_.luma_stride + x], planes_.cb[at], planes_.cr[at]));
  }

 private:
  YccPlanes planes_;
};

/// AnySource for 4:2:0 without padding, flip or gray. libjpeg makes a pixel's chroma of the four samples around it, and
/// the four pixels around a corner of samples, odd ones before even ones, share theirs: a cell is these four. So a
/// pixel takes 3 loads instead of 9.
class H2V2Source {
 public:
  static constexpr int kEdge = 2;

  /// `u`, `v`: the pixels whose luma may be read.
  HEADRACE_HD H2V2Source(const SampleJob& job, IntRange u, IntRange v)
      : planes_(job),
        luma_x_{planes_.x + u.begin, planes_.x + u.end - 1},
        luma_y_{planes_.y + v.begin, planes_.y + v.end - 1},
        chroma_x_{-job.image.plane[1].x0, job.image.plane[1].width - 1 - job.image.plane[1].x0},
        chroma_y_{-job.image.plane[1].y0, job.image.plane[1].height - 1 - job.image.plane[1].y0} {}

  HEADRACE_HD int cell_x(int u) const { return u - (~(planes_.x + u) & 1); }
  HEADRACE_HD int cell_y(int v) const { return v - (~(planes_.y + v) & 1); }
  template <class Store>
  HEADRACE_HD void cell(int u, int v, Store store) const {
    const int x = planes_.x + u, y = planes_.y + v;  // odd
    const int chroma_stride = planes_.chroma_stride, luma_stride = planes_.luma_stride;
    const uint8_t *cb_plane = planes_.cb, *cr_plane = planes_.cr;
    const int left = clamped(x >> 1, chroma_x_), upper = clamped(y >> 1, chroma_y_) * chroma_stride;
    const int right = clamped((x >> 1) + 1, chroma_x_), lower = clamped((y >> 1) + 1, chroma_y_) * chroma_stride;
    int cb[4], cr[4];
    spread(at(cb_plane, upper + left), at(cb_plane, upper + right), at(cb_plane, lower + left),
           at(cb_plane, lower + right), cb);
    spread(at(cr_plane, upper + left), at(cr_plane, upper + right), at(cr_plane, lower + left),
           at(cr_plane, lower + right), cr);
    const int column[2] = {clamped(x, luma_x_), clamped(x + 1, luma_x_)};
    const int row[2] = {clamped(y, luma_y_) * luma_stride, clamped(y + 1, luma_y_) * luma_stride};
    for (int k = 0; k < 4; ++k) {
      const int i = k & 1, j = k >> 1;
      store(i, j, rgb_of_ycc(at(planes_.luma, row[j] + column[i]), cb[k], cr[k]));
    }
  }

 private:
  struct Limits {
    int least, most;
  };

  HEADRACE_HD static int clamped(int value, Limits to) {
    value = value < to.least ? to.least : value;
    return value > to.most ? to.most : value;
  }

  // Without a sign, an address takes an instruction less.
  HEADRACE_HD static int at(const uint8_t* plane, int offset) { return plane[static_cast<uint32_t>(offset)]; }

  // The values of four pixels, row by row, between four samples.
  HEADRACE_HD static void spread(int upper_left, int upper_right, int lower_left, int lower_right, int* to) {
    for (int j = 0; j < 2; ++j) {
      const int left = j == 0 ? 3 * upper_left + lower_left : 3 * lower_left + upper_left;
      const int right = j == 0 ? 3 * upper_right + lower_right : 3 * lower_right + upper_right;
      to[2 * j] = (3 * left + right + 7) >> 4;
      to[2 * j + 1] = (3 * right + left + 8) >> 4;
    }
  }

  YccPlanes planes_;
  Limits luma_x_, luma_y_, chroma_x_, chroma_y_;
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
    visit(H2V2Source(job, u, v));
  } else if (plain && plane[1].upsampling == Upsampling::kNone) {
    visit(YccSource(job));
  } else {
    visit(AnySource(job));
  }
}

}  // namespace headrace
