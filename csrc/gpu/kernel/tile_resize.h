// The resize of one tile by a block of threads.
//
// Note [two passes in a tile]: Pillow rounds to bytes between the passes of a resize, and their order depends on the
// sizes. With `p` for the axis of the first pass and `q` for that of the second, one algorithm serves both orders. A
// block makes kTile x kTile outputs. It takes the source lines (along q) that its windows read, some at a time:
// converts their pixels into shared memory, and resizes them along p to bytes. Where all resized lines fit there, up to
// 2.6 times smaller with bilinear and 2.1 times with Lanczos, they are then resized along q. Otherwise some lines, or
// parts of them, are added, weighted, to sums that the threads keep for their outputs: so the shared memory is bounded
// for any reduction. Sums of integers do not depend on the order of their terms: the bytes are Pillow's.
#pragma once

#include "gpu/kernel/sample_job.h"
#include "gpu/kernel/tile_source.h"

namespace headrace {

inline constexpr int kRows = kBlockThreads / kTile;  // rows of a tile that are made at the same time
inline constexpr int kOutputsEach = kTile / kRows;   // outputs of a thread
inline constexpr int kBlockPixels = 4096, kBlockLines = 96;

/// Shared memory of a block.
struct BlockMemory {
  uint32_t pixels[kBlockPixels];      // source pixels of some lines; at the end the tile's pixels, kTile per row
  uint32_t mid[kBlockLines * kTile];  // lines after the first pass, kTile pixels each
};

/// Sums that a thread keeps between barriers where a tile is resized in parts. Indices: output, channel.
struct ThreadMemory {
  int32_t line_sum[3];           // of the first pass
  int32_t sum[kOutputsEach][3];  // of the second
};

/// Pixels `p` of lines `q` in shared memory: [position along p][line], `pitch` words from position to position. Odd,
/// so that the pixels of a line are in different banks.
struct Patch {
  IntRange p, q;
  int pitch = 0;
};

/// Adds weight * pixel to the sums of the three channels. The fourth byte of a pixel is 0.
HEADRACE_HD inline void add_weighted(int32_t* sum, uint32_t pixel, int32_t weight) {
#if defined(__CUDA_ARCH__)
  const uint32_t green = __byte_perm(pixel, 0, 0x4441);  // one instruction; a shift and a mask are two
#else
  const uint32_t green = pixel >> 8 & 255;
#endif
  sum[0] += static_cast<int32_t>(pixel & 255) * weight;
  sum[1] += static_cast<int32_t>(green) * weight;
  sum[2] += static_cast<int32_t>(pixel >> 16) * weight;
}

/// The packed pixel of three weighted sums.
HEADRACE_HD inline uint32_t pixel_of_sums(const int32_t* sum) {
  return pack_rgbx(byte_of_sum(sum[0]), byte_of_sum(sum[1]), byte_of_sum(sum[2]));
}

/// Resets sums to one half, so that the final shift rounds.
HEADRACE_HD inline void begin_sums(int32_t* sums, int count) {
  for (int i = 0; i < count; ++i) sums[i] = kWeightHalf;
}

/// The positions that the windows of some outputs contain.
HEADRACE_HD inline IntRange read_by(const AxisWindows& axis, IntRange outputs) {
  return {axis.window(outputs.begin).begin, axis.window(outputs.end - 1).end};
}

/// The place in block.pixels of an output of the tile.
template <bool kVerticalFirst>
HEADRACE_HD int place_of(int along_p, int along_q) {
  return kVerticalFirst ? along_p * kTile + along_q : along_q * kTile + along_p;
}

/// `range` from where a cell of the source begins, along p or along q.
template <bool kAlongY, class Source>
HEADRACE_HD IntRange from_cell(const Source& source, IntRange range) {
  return {kAlongY ? source.cell_y(range.begin) : source.cell_x(range.begin), range.end};
}

/// Fills block.pixels with the patch, whose begins are those of cells of the source. Neighbouring threads read
/// neighbours in x, so that their loads coalesce: along p in one order of the passes, along q in the other.
template <bool kVerticalFirst, class Threads, class Source>
HEADRACE_HD void load_patch(Threads& threads, BlockMemory& block, Source source, Patch patch) {
  constexpr int kEdge = Source::kEdge;
  threads.each([&](int thread, ThreadMemory&) {
    const IntRange x = kVerticalFirst ? patch.q : patch.p, y = kVerticalFirst ? patch.p : patch.q;
    const uint32_t width = static_cast<uint32_t>(x.size() + kEdge - 1) / kEdge;  // in cells
    const int height = (y.size() + kEdge - 1) / kEdge;
    const int rows_on = static_cast<int>(kBlockThreads / width);  // to a thread's next cell
    const int columns_on = static_cast<int>(kBlockThreads % width), columns = static_cast<int>(width);
    const int step_x = kVerticalFirst ? 1 : patch.pitch, step_y = kVerticalFirst ? patch.pitch : 1;
    int row = static_cast<int>(static_cast<uint32_t>(thread) / width), column = thread - row * columns;
    HEADRACE_UNROLL(1)
    while (row < height) {
      uint32_t* to = block.pixels + kEdge * (column * step_x + row * step_y);
      source.cell(x.begin + kEdge * column, y.begin + kEdge * row,
                  [&](int i, int j, uint32_t pixel) { to[i * step_x + j * step_y] = pixel; });
      row += rows_on;
      column += columns_on;
      if (column >= columns) {
        column -= columns;
        ++row;
      }
    }
  });
}

/// Most lines, a power of two of at most kTile, of which `width` pixels each fit block.pixels; 0: not one.
HEADRACE_HD inline int most_lines(int width) {
  int lines = kTile;
  HEADRACE_UNROLL(1)
  while (lines > 0 && (lines + 1) * width > kBlockPixels) lines /= 2;
  return lines;
}

/// The first pass over the patch, which holds whole lines, at most kEach * kRows of them. `to`: the first line's place.
template <int kEach, class Threads>
HEADRACE_HD void resize_lines(Threads& threads, BlockMemory& block, const AxisWindows& axis, IntRange outputs,
                              Patch patch, uint32_t* to) {
  threads.each([&](int thread, ThreadMemory&) {
    const int column = thread % kTile, first = thread / kTile;
    if (outputs.begin + column >= outputs.end || first >= patch.q.size()) return;
    const Window window = axis.window(outputs.begin + column);
    const int taps = axis.most_taps, step = axis.outputs;
    const uint32_t* pixel = block.pixels + (window.begin - patch.p.begin) * patch.pitch + first;
    const int32_t* weight = window.weight;
    int32_t sum[kEach][3];
    begin_sums(sum[0], 3 * kEach);
    HEADRACE_UNROLL(2)
    for (int tap = 0; tap < taps; ++tap, pixel += patch.pitch, weight += step) {
      HEADRACE_UNROLL(kEach)
      for (int k = 0; k < kEach; ++k) add_weighted(sum[k], pixel[k * kRows], *weight);
    }
    for (int k = 0; k < kEach; ++k) to[(first + k * kRows) * kTile + column] = pixel_of_sums(sum[k]);
  });
}

/// The second pass over the tile: block.mid holds all lines that it reads, from `first_line` on.
template <bool kVerticalFirst, class Threads>
HEADRACE_HD void combine_lines(Threads& threads, BlockMemory& block, const AxisWindows& axis, IntRange outputs,
                               int first_line) {
  threads.each([&](int thread, ThreadMemory&) {
    const int along_p = thread % kTile, row = thread / kTile, taps = axis.most_taps, step = axis.outputs;
    const int32_t* start = axis.start + (outputs.begin - axis.first + row);
    const int32_t* weight = axis.weight + (outputs.begin - axis.first + row);
    const uint32_t* pixel[kOutputsEach];
    int32_t sum[kOutputsEach][3];
    begin_sums(sum[0], 3 * kOutputsEach);
    HEADRACE_UNROLL(kOutputsEach)
    for (int k = 0; k < kOutputsEach; ++k) {
      const int line = row + k * kRows < outputs.size() ? start[k * kRows] - first_line : 0;
      pixel[k] = block.mid + line * kTile + along_p;
    }
    HEADRACE_UNROLL(2)
    for (int tap = 0; tap < taps; ++tap, weight += step) {
      HEADRACE_UNROLL(kOutputsEach)
      for (int k = 0; k < kOutputsEach; ++k) add_weighted(sum[k], pixel[k][tap * kTile], weight[k * kRows]);
    }
    HEADRACE_UNROLL(kOutputsEach)
    for (int k = 0; k < kOutputsEach; ++k) {
      block.pixels[place_of<kVerticalFirst>(along_p, row + k * kRows)] = pixel_of_sums(sum[k]);
    }
  });
}

/// Both passes, where block.mid has room for all lines. `p_read`, `q_read`: what is read, from the begin of a cell.
/// `most`: lines at a time.
template <bool kVerticalFirst, class Threads, class Source>
HEADRACE_HD void resize_at_once(Threads& threads, BlockMemory& block, Source source, const AxisWindows& p_axis,
                                const AxisWindows& q_axis, IntRange p, IntRange q, IntRange p_read, IntRange q_read,
                                int most) {
  HEADRACE_UNROLL(1)
  for (int line = q_read.begin; line < q_read.end; line += most) {
    const Patch patch{p_read, overlap({line, line + most}, q_read), most + 1};
    uint32_t* to = block.mid + (line - q_read.begin) * kTile;
    load_patch<kVerticalFirst>(threads, block, source, patch);
    if (patch.q.size() > 2 * kRows) {
      resize_lines<4>(threads, block, p_axis, p, patch, to);
    } else if (patch.q.size() > kRows) {
      resize_lines<2>(threads, block, p_axis, p, patch, to);
    } else {
      resize_lines<1>(threads, block, p_axis, p, patch, to);
    }
  }
  combine_lines<kVerticalFirst>(threads, block, q_axis, q, q_read.begin);
}

/// The first pass over a part of at most kRows lines. `last`: the outputs are complete with this part.
template <class Threads>
HEADRACE_HD void add_part(Threads& threads, BlockMemory& block, const AxisWindows& axis, IntRange outputs, Patch patch,
                          bool last) {
  threads.each([&](int thread, ThreadMemory& own) {
    const int column = thread % kTile, line = thread / kTile;
    if (outputs.begin + column >= outputs.end || line >= patch.q.size()) return;
    const Window window = axis.window(outputs.begin + column);
    const IntRange read = overlap({window.begin, window.end}, patch.p);
    const uint32_t* pixel = block.pixels + (read.begin - patch.p.begin) * patch.pitch + line;
    const int32_t* weight = window.weight + (read.begin - window.begin) * axis.outputs;
    HEADRACE_UNROLL(1)
    for (int at = read.begin; at < read.end; ++at, pixel += patch.pitch, weight += axis.outputs) {
      add_weighted(own.line_sum, *pixel, *weight);
    }
    if (!last) return;
    block.mid[line * kTile + column] = pixel_of_sums(own.line_sum);
    begin_sums(own.line_sum, 3);
  });
}

/// The second pass over some lines: adds them, weighted, to the sums of the tile's outputs.
template <class Threads>
HEADRACE_HD void add_lines(Threads& threads, BlockMemory& block, const AxisWindows& axis, IntRange outputs,
                           IntRange lines) {
  threads.each([&](int thread, ThreadMemory& own) {
    HEADRACE_UNROLL(kOutputsEach)
    for (int k = 0; k < kOutputsEach; ++k) {
      const int output = outputs.begin + thread / kTile + k * kRows;
      if (output >= outputs.end) break;
      const Window window = axis.window(output);
      const IntRange read = overlap({window.begin, window.end}, lines);
      const uint32_t* pixel = block.mid + (read.begin - lines.begin) * kTile + thread % kTile;
      const int32_t* weight = window.weight + (read.begin - window.begin) * axis.outputs;
      HEADRACE_UNROLL(1)
      for (int at = read.begin; at < read.end; ++at, pixel += kTile, weight += axis.outputs) {
        add_weighted(own.sum[k], *pixel, *weight);
      }
    }
  });
}

/// Both passes for windows of any width. Arguments: see resize_at_once.
template <bool kVerticalFirst, class Threads, class Source>
HEADRACE_HD void resize_in_parts(Threads& threads, BlockMemory& block, Source source, const AxisWindows& p_axis,
                                 const AxisWindows& q_axis, IntRange p, IntRange q, IntRange p_read, IntRange q_read) {
  constexpr int kPitch = kRows + 1, kPart = kBlockPixels / kPitch / kMostEdge * kMostEdge;
  threads.each([](int, ThreadMemory& own) {
    begin_sums(own.line_sum, 3);
    begin_sums(own.sum[0], 3 * kOutputsEach);
  });
  HEADRACE_UNROLL(1)
  for (int line = q_read.begin; line < q_read.end; line += kRows) {
    const IntRange lines = overlap({line, line + kRows}, q_read);
    HEADRACE_UNROLL(1)
    for (int at = p_read.begin; at < p_read.end; at += kPart) {
      const Patch patch{overlap({at, at + kPart}, p_read), lines, kPitch};
      load_patch<kVerticalFirst>(threads, block, source, patch);
      add_part(threads, block, p_axis, p, patch, patch.p.end == p_read.end);
    }
    add_lines(threads, block, q_axis, q, lines);
  }
  threads.each([&](int thread, ThreadMemory& own) {
    HEADRACE_UNROLL(kOutputsEach)
    for (int k = 0; k < kOutputsEach; ++k) {
      const int along_q = thread / kTile + k * kRows;
      block.pixels[place_of<kVerticalFirst>(thread % kTile, along_q)] = pixel_of_sums(own.sum[k]);
    }
  });
}

/// Both passes over one tile: fills block.pixels with the pixels of `x` x `y` of the resized image, kTile per row.
template <bool kVerticalFirst, class Threads>
HEADRACE_HD void resize_tile(Threads& threads, BlockMemory& block, const SampleJob& job, IntRange x, IntRange y) {
  const AxisWindows &p_axis = kVerticalFirst ? job.y : job.x, &q_axis = kVerticalFirst ? job.x : job.y;
  const IntRange p = kVerticalFirst ? y : x, q = kVerticalFirst ? x : y;
  with_source(job, read_by(job.x, x), read_by(job.y, y), [&](auto source) {
    using Source = decltype(source);
    const IntRange p_read = from_cell<kVerticalFirst>(source, read_by(p_axis, p));
    const IntRange q_read = from_cell<!kVerticalFirst>(source, read_by(q_axis, q));
    // Windows are read up to the longest one's length: what is beyond them has a weight of zero.
    const int most = most_lines(p_read.size() + p_axis.most_taps + Source::kEdge - 1);
    if (most >= Source::kEdge && q_read.size() + q_axis.most_taps <= kBlockLines) {
      resize_at_once<kVerticalFirst>(threads, block, source, p_axis, q_axis, p, q, p_read, q_read, most);
    } else {
      resize_in_parts<kVerticalFirst>(threads, block, source, p_axis, q_axis, p, q, p_read, q_read);
    }
  });
}

}  // namespace headrace
