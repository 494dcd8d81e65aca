// The fused kernel: the work of one block of threads. The same source runs on a GPU and, thread by thread, on the host.
//
// Note [two passes in a tile]: Pillow rounds to bytes between the passes of a resize, and their order depends on the
// sizes. With `p` for the axis of the first pass and `q` for that of the second, one algorithm serves both orders. A
// block makes kTile x kTile outputs. It loops over the source lines (along q) that its windows read, a few at a time:
// it converts their pixels once into shared memory, resizes them along p to bytes, and adds these, weighted, to sums
// that the threads keep for their outputs. So the shared memory is bounded for any reduction. Sums of integers do not
// depend on the order of their terms: the bytes are Pillow's.
//
// Note [what is copied]: the compiler must assume that a thread's writes alias the job, and would reload the job after
// each of them. So loops work on copies: a window, a source, a store. AnySource is the exception: it is rare, and its
// copy would cost registers in every block.
#pragma once

#include "gpu/kernel/element_store.h"
#include "gpu/kernel/sample_job.h"
#include "gpu/kernel/tile_source.h"

namespace headrace {

inline constexpr int kRows = kBlockThreads / kTile;  // rows of a tile that are made at the same time
inline constexpr int kOutputsEach = kTile / kRows;   // outputs of a thread
// Most pixels of a line at a time. Odd, so that the pixels of a column are in different banks of shared memory.
inline constexpr int kPitch = 191;

/// Shared memory of a block.
struct BlockMemory {
  uint32_t pixels[kTile * kPitch];  // 24 KiB: source pixels of some lines; at the end the tile's pixels
  uint32_t mid[kTile * kTile];      // the same lines after the first pass, kTile per line
};

/// State that a thread keeps between barriers. Indices: output, channel.
struct ThreadMemory {
  int32_t line_sum[kOutputsEach][3];  // of the first pass
  int32_t sum[kOutputsEach][3];       // of the second
};

/// The smallest range of the image that contains the pixels that positions [from, to) of a take show; empty: all are
/// fill. Not longer than to - from.
HEADRACE_HD inline IntRange shown(const TakeAxis& axis, PadMode pad, int from, int to) {
  if (axis.inside(from, to)) {
    const int a = axis.unpadded(from), b = axis.unpadded(to - 1);
    return a < b ? IntRange{a, b + 1} : IntRange{b, a + 1};
  }
  IntRange range{axis.image, 0};
  HEADRACE_SHORT_LOOP
  for (int i = from; i < to; ++i) {
    const int at = axis.at(i, pad);
    if (at < 0) continue;
    range.begin = at < range.begin ? at : range.begin;
    range.end = at + 1 > range.end ? at + 1 : range.end;
  }
  return range;
}

/// Adds weight * pixel to the sums of the three channels.
HEADRACE_HD inline void add_weighted(int32_t* sum, uint32_t pixel, int32_t weight) {
  sum[0] += static_cast<int32_t>(pixel & 255) * weight;
  sum[1] += static_cast<int32_t>(pixel >> 8 & 255) * weight;
  sum[2] += static_cast<int32_t>(pixel >> 16 & 255) * weight;
}

/// The packed pixel of three weighted sums.
HEADRACE_HD inline uint32_t pixel_of_sums(const int32_t* sum) {
  return pack_rgbx(byte_of_sum(sum[0]), byte_of_sum(sum[1]), byte_of_sum(sum[2]));
}

/// Resets the sums of all outputs to one half, so that the final shift rounds.
HEADRACE_HD inline void begin_sums(int32_t (*sums)[3]) {
  for (int k = 0; k < kOutputsEach; ++k) sums[k][0] = sums[k][1] = sums[k][2] = kWeightHalf;
}

/// Copies pixels `p` of the lines to block.pixels, kPitch pixels per line. Neighbouring threads read neighbours in x,
/// so that their loads coalesce: along p in one order of the passes, along q in the other.
template <bool kVerticalFirst, class Threads, class Source>
HEADRACE_HD void load_lines(Threads& threads, BlockMemory& block, Source source, IntRange p, IntRange lines) {
  threads.each([&](int thread, ThreadMemory&) {
    const int width = kVerticalFirst ? lines.size() : p.size(), height = kVerticalFirst ? p.size() : lines.size();
    const int rows_on = kBlockThreads / width, columns_on = kBlockThreads % width;  // to a thread's next pixel
    int row = thread / width, column = thread % width;
    HEADRACE_SHORT_LOOP
    while (row < height) {
      const int i = kVerticalFirst ? column : row, j = kVerticalFirst ? row : column;
      const int along_p = p.begin + j, along_q = lines.begin + i;
      block.pixels[i * kPitch + j] = kVerticalFirst ? source(along_q, along_p) : source(along_p, along_q);
      row += rows_on;
      column += columns_on;
      if (column >= width) {
        column -= width;
        ++row;
      }
    }
  });
}

/// The first pass over pixels `part` of kTile lines in block.pixels. `last`: the outputs are complete with this part.
/// Where there are fewer lines, the rest hold stale pixels, and their results are never read.
template <class Threads>
HEADRACE_HD void resize_lines(Threads& threads, BlockMemory& block, const AxisWindows& axis, IntRange outputs,
                              IntRange part, bool last) {
  threads.each([&](int thread, ThreadMemory& own) {
    const int column = thread % kTile, first = thread / kTile;
    if (outputs.begin + column >= outputs.end) return;
    const Window window = axis.window(outputs.begin + column);
    const int begin = window.begin > part.begin ? window.begin : part.begin;
    const int end = window.end < part.end ? window.end : part.end;
    for (int at = begin; at < end; ++at) {
      const int32_t weight = window.weight_of(at);
      const uint32_t* pixel = block.pixels + first * kPitch + (at - part.begin);
      for (int k = 0; k < kOutputsEach; ++k) add_weighted(own.line_sum[k], pixel[k * kRows * kPitch], weight);
    }
    if (!last) return;
    for (int k = 0; k < kOutputsEach; ++k) {
      block.mid[(first + k * kRows) * kTile + column] = pixel_of_sums(own.line_sum[k]);
    }
    begin_sums(own.line_sum);
  });
}

/// The second pass over some lines: adds them, weighted, to the sums of the tile's outputs.
template <class Threads>
HEADRACE_HD void add_lines(Threads& threads, BlockMemory& block, const AxisWindows& axis, IntRange outputs,
                           IntRange lines) {
  threads.each([&](int thread, ThreadMemory& own) {
    for (int k = 0; k < kOutputsEach; ++k) {
      const int output = outputs.begin + thread / kTile + k * kRows;
      if (output >= outputs.end) break;
      const Window window = axis.window(output);
      const int begin = window.begin > lines.begin ? window.begin : lines.begin;
      const int end = window.end < lines.end ? window.end : lines.end;
      int pixel = (begin - lines.begin) * kTile + thread % kTile;
      HEADRACE_SHORT_LOOP
      for (int at = begin; at < end; ++at, pixel += kTile) {
        add_weighted(own.sum[k], block.mid[pixel], window.weight_of(at));
      }
    }
  });
}

/// Both passes over one tile: fills block.pixels with the pixels of `x` x `y` of the resized image, kTile per row.
template <bool kVerticalFirst, class Threads>
HEADRACE_HD void resize_tile(Threads& threads, BlockMemory& block, const SampleJob& job, IntRange x, IntRange y) {
  const AxisWindows &p_axis = kVerticalFirst ? job.y : job.x, &q_axis = kVerticalFirst ? job.x : job.y;
  const IntRange p = kVerticalFirst ? y : x, q = kVerticalFirst ? x : y;
  const IntRange p_read{p_axis.window(p.begin).begin, p_axis.window(p.end - 1).end};
  const IntRange q_read{q_axis.window(q.begin).begin, q_axis.window(q.end - 1).end};
  threads.each([](int, ThreadMemory& own) {
    begin_sums(own.line_sum);
    begin_sums(own.sum);
  });
  with_source(job, kVerticalFirst ? q_read : p_read, kVerticalFirst ? p_read : q_read, [&](auto source) {
    HEADRACE_SHORT_LOOP
    for (int line = q_read.begin; line < q_read.end; line += kTile) {
      const IntRange lines{line, line + kTile < q_read.end ? line + kTile : q_read.end};
      HEADRACE_SHORT_LOOP
      for (int at = p_read.begin; at < p_read.end; at += kPitch) {
        const IntRange part{at, at + kPitch < p_read.end ? at + kPitch : p_read.end};
        load_lines<kVerticalFirst>(threads, block, source, part, lines);
        resize_lines(threads, block, p_axis, p, part, part.end == p_read.end);
      }
      add_lines(threads, block, q_axis, q, lines);
    }
  });
  threads.each([&](int thread, ThreadMemory& own) {
    for (int k = 0; k < kOutputsEach; ++k) {
      const int along_p = thread % kTile, along_q = thread / kTile + k * kRows;
      block.pixels[kVerticalFirst ? along_p * kTile + along_q : along_q * kTile + along_p] = pixel_of_sums(own.sum[k]);
    }
  });
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
    HEADRACE_SHORT_LOOP
    for (int to_v = v.begin + thread / kTile; to_v < v.end; to_v += kRows) {
      const int row = kPlain ? take.y.unpadded(to_v) : take.row(to_v);
      const bool filled = !kPlain && (column < 0 || row < 0);
      const uint32_t pixel = filled ? take.fill : block.pixels[(row - y) * kTile + (column - x)];
      store(to_u, to_v, kPlain ? pixel : take.gray_if_needed(pixel));
    }
  });
}

/// Runs block `number` of the launch: one tile of one sample.
template <class Threads>
HEADRACE_HD void fuse_block(Threads& threads, BlockMemory& block, const FuseLaunch& launch, int number) {
  const int tiles = launch.tiles_x() * launch.tiles_y(), tile = number % tiles;
  const SampleJob& job = launch.jobs[number / tiles];
  if (job.skip) return;
  const int left = tile % launch.tiles_x() * kTile, top = tile / launch.tiles_x() * kTile;
  const TakeMap take = job.last;
  const IntRange u{left, left + kTile < take.x.size ? left + kTile : take.x.size};
  const IntRange v{top, top + kTile < take.y.size ? top + kTile : take.y.size};
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
