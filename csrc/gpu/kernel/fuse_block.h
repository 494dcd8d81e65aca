// The fused kernel: the work of one block of threads. The same source runs on a GPU and, thread by thread, on the host.
//
// Note [what is copied]: the compiler must assume that a thread's writes alias the job, and would reload the job after
// each of them. So loops work on copies: a window, a source, a store. AnySource is the exception: it is rare, and its
// copy would cost registers in every block.
#pragma once

#include "gpu/kernel/element_store.h"
#include "gpu/kernel/sample_job.h"
#include "gpu/kernel/tile_resize.h"

namespace headrace {

/// The smallest range of the image that contains the pixels that positions [from, to) of a take show; empty: all are
/// fill. Not longer than to - from.
HEADRACE_HD inline IntRange shown(const TakeAxis& axis, PadMode pad, int from, int to) {
  if (axis.inside(from, to)) {
    const int a = axis.unpadded(from), b = axis.unpadded(to - 1);
    return a < b ? IntRange{a, b + 1} : IntRange{b, a + 1};
  }
  IntRange range{axis.image, 0};
  HEADRACE_UNROLL(1)
  for (int i = from; i < to; ++i) {
    const int at = axis.at(i, pad);
    if (at < 0) continue;
    range.begin = at < range.begin ? at : range.begin;
    range.end = at + 1 > range.end ? at + 1 : range.end;
  }
  return range;
}

/// Calls store(u, v, pixel) for each output in columns `u` and rows `v`. block.pixels holds the tile, whose corner is
/// (x, y) in the resized image. kPlain: the take neither pads nor converts to gray.
template <bool kPlain, class Threads, class Store>
HEADRACE_HD void take_tile(Threads& threads, BlockMemory& block, TakeMap take, IntRange u, IntRange v, int x, int y,
                           Store store) {
  threads.each([&](int thread, ThreadMemory&) {
    const int to_u = u.begin + thread % kTile;
    if (to_u >= u.end) return;
    const int column = kPlain ? take.x.unpadded(to_u) : take.column(to_u);
    HEADRACE_UNROLL(1)
    for (int to_v = v.begin + thread / kTile; to_v < v.end; to_v += kRows) {
      const int row = kPlain ? take.y.unpadded(to_v) : take.row(to_v);
      const bool filled = !kPlain && (column < 0 || row < 0);
      const uint32_t pixel = filled ? take.fill : block.pixels[(row - y) * kTile + (column - x)];
      store(to_u, to_v, kPlain ? pixel : take.gray_if_needed(pixel));
    }
  });
}

/// Makes one tile of one sample.
template <class Threads>
HEADRACE_HD void fuse_block(Threads& threads, BlockMemory& block, const FuseLaunch& launch, int tile, int sample) {
  const SampleJob& job = launch.jobs[sample];
  if (job.skip) return;
  const int left = tile % launch.tiles_x() * kTile, top = tile / launch.tiles_x() * kTile;
  const TakeMap take = job.last;
  const IntRange u = overlap({left, left + kTile}, {0, take.x.size});
  const IntRange v = overlap({top, top + kTile}, {0, take.y.size});
  if (u.begin >= u.end || v.begin >= v.end) return;
  const IntRange x = shown(take.x, take.pad, u.begin, u.end), y = shown(take.y, take.pad, v.begin, v.end);
  if (x.size() > 0 && y.size() > 0) {
    if (job.vertical_first) {
      resize_tile<true>(threads, block, job, x, y);
    } else {
      resize_tile<false>(threads, block, job, x, y);
    }
  }
  const auto take_to = [&](auto store) {
    if (!take.gray && take.x.inside(u.begin, u.end) && take.y.inside(v.begin, v.end)) {
      take_tile<true>(threads, block, take, u, v, x.begin, y.begin, store);
    } else {
      take_tile<false>(threads, block, take, u, v, x.begin, y.begin, store);
    }
  };
  if (job.retouch.count > 0) {
    take_to([picture = job.retouch.picture, width = take.x.size](int to_u, int to_v, uint32_t pixel) {
      picture[static_cast<ptrdiff_t>(to_v) * width + to_u] = pixel;
    });
  } else {
    with_store(job, launch.format, take_to);
  }
}

}  // namespace headrace
