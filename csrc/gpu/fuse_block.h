// The fused kernel: what one block of threads does. The same text runs on a GPU and, thread by thread, on the host.
//
// Note [two passes in a tile]: Pillow rounds to bytes between the passes of a resize, and their order depends on the
// sizes. With `p` for the axis of the first pass and `q` for that of the second, both orders are one algorithm. A block
// makes kTile x kTile outputs. It walks over the source lines (along q) that its windows read, a few at a time:
// converts their pixels once into shared memory, resizes them along p into bytes, and adds these, weighted, to the sums
// that the threads keep for their outputs. So shared memory is bounded, however much an image shrinks. Sums of integers
// do not depend on the order of their terms: the bytes are Pillow's.
#pragma once

#include "sample_job.h"

namespace headrace {

inline constexpr int kOutputsEach = kTile * kTile / kBlockThreads;
inline constexpr int kStagePixels = 6144;  // 24 KiB

struct BlockMemory {
  uint32_t stage[kStagePixels];  // source pixels of some lines; at the end the tile's pixels
  uint32_t mid[kTile * kTile];   // the same lines after the first pass, kTile a line
};

/// What a thread keeps between the steps of a block.
struct ThreadMemory {
  int32_t sum[kOutputsEach][3];
};

struct IntRange {
  int begin = 0, end = 0;
  HEADRACE_HD int size() const { return end - begin; }
};

/// The places that outputs [from, to) of a take show; not empty unless all is fill. No longer than to - from.
HEADRACE_HD inline IntRange shown(const TakeMap& take, bool columns, int from, int to) {
  IntRange range{columns ? take.image_width : take.image_height, 0};
  for (int i = from; i < to; ++i) {
    const int at = columns ? take.column(i) : take.row(i);
    if (at < 0) continue;
    range.begin = at < range.begin ? at : range.begin;
    range.end = at + 1 > range.end ? at + 1 : range.end;
  }
  return range;
}

/// The pixel (u, v) of what the resize reads.
HEADRACE_HD inline uint32_t taken_pixel(const SampleJob& job, int u, int v) {
  const int x = job.first.column(u), y = job.first.row(v);
  return job.first.tint(x < 0 || y < 0 ? job.first.fill : pixel_at(job.image, x, y));
}

/// Adds weight * pixel to three sums.
HEADRACE_HD inline void add_weighted(int32_t* sum, uint32_t pixel, int32_t weight) {
  sum[0] += static_cast<int32_t>(pixel & 255) * weight;
  sum[1] += static_cast<int32_t>(pixel >> 8 & 255) * weight;
  sum[2] += static_cast<int32_t>(pixel >> 16 & 255) * weight;
}

HEADRACE_HD inline uint32_t pixel_of_sums(const int32_t* sum) {
  return packed(byte_of_sum(sum[0]), byte_of_sum(sum[1]), byte_of_sum(sum[2]));
}

/// Both passes over one tile: fills block.stage with the pixels of [x.begin, x.end) x [y.begin, y.end) of the resized
/// image, kTile a row.
template <bool kVerticalFirst, class Threads>
HEADRACE_HD void resize_tile(Threads& threads, BlockMemory& block, const SampleJob& job, IntRange x, IntRange y) {
  const AxisWindows& p_axis = kVerticalFirst ? job.y : job.x;
  const AxisWindows& q_axis = kVerticalFirst ? job.x : job.y;
  const IntRange p = kVerticalFirst ? y : x, q = kVerticalFirst ? x : y;
  const int p_from = p_axis.begin(p.begin), p_span = p_axis.end(p.end - 1) - p_from;
  const int q_from = q_axis.begin(q.begin), q_to = q_axis.end(q.end - 1);
  const bool staged = p_span <= kStagePixels;  // else a resize to a hundredth: pixels are converted as they are needed
  const int most_lines = staged ? kStagePixels / p_span : kTile;
  const int chunk = most_lines < kTile ? most_lines : kTile;
  const auto source = [&job](int along_p, int along_q) {
    return kVerticalFirst ? taken_pixel(job, along_q, along_p) : taken_pixel(job, along_p, along_q);
  };

  threads.each([](int, ThreadMemory& own) {
    for (auto& sum : own.sum) sum[0] = sum[1] = sum[2] = kWeightHalf;
  });
  for (int line = q_from; line < q_to; line += chunk) {
    const int lines = q_to - line < chunk ? q_to - line : chunk;
    if (staged) {
      threads.each([&](int thread, ThreadMemory&) {
        // Neighbouring threads read neighbours in x: along p in one order, along q in the other.
        const int fast = thread % kTile, slow = thread / kTile, slow_step = kBlockThreads / kTile;
        if (kVerticalFirst) {
          for (int j = slow; j < p_span && fast < lines; j += slow_step) {
            block.stage[fast * p_span + j] = source(p_from + j, line + fast);
          }
        } else {
          for (int i = slow; i < lines; i += slow_step) {
            for (int j = fast; j < p_span; j += kTile) block.stage[i * p_span + j] = source(p_from + j, line + i);
          }
        }
      });
    }
    threads.each([&](int thread, ThreadMemory&) {
      const int at = p.begin + thread % kTile;
      if (at >= p.end) return;
      const int begin = p_axis.begin(at), end = p_axis.end(at);
      for (int i = thread / kTile; i < lines; i += kBlockThreads / kTile) {
        int32_t sum[3] = {kWeightHalf, kWeightHalf, kWeightHalf};
        for (int j = begin; j < end; ++j) {
          const uint32_t pixel = staged ? block.stage[i * p_span + (j - p_from)] : source(j, line + i);
          add_weighted(sum, pixel, p_axis.weight_of(at, j));
        }
        block.mid[i * kTile + thread % kTile] = pixel_of_sums(sum);
      }
    });
    threads.each([&](int thread, ThreadMemory& own) {
      for (int k = 0; k < kOutputsEach; ++k) {
        const int at = q.begin + thread / kTile + k * (kBlockThreads / kTile);
        if (at >= q.end) break;
        const int window_begin = q_axis.begin(at), window_end = q_axis.end(at);
        const int begin = window_begin > line ? window_begin : line;
        const int end = window_end < line + lines ? window_end : line + lines;
        for (int j = begin; j < end; ++j) {
          add_weighted(own.sum[k], block.mid[(j - line) * kTile + thread % kTile], q_axis.weight_of(at, j));
        }
      }
    });
  }
  threads.each([&](int thread, ThreadMemory& own) {
    for (int k = 0; k < kOutputsEach; ++k) {
      const int along_p = thread % kTile, along_q = thread / kTile + k * (kBlockThreads / kTile);
      block.stage[kVerticalFirst ? along_p * kTile + along_q : along_q * kTile + along_p] = pixel_of_sums(own.sum[k]);
    }
  });
}

/// The element that stands for a byte, or an entry of another table.
HEADRACE_HD inline void store_element(uint8_t* to, const void* table, int entry, int element_bytes) {
  if (element_bytes == 4) {
    *reinterpret_cast<uint32_t*>(to) = static_cast<const uint32_t*>(table)[entry];
  } else if (element_bytes == 2) {
    *reinterpret_cast<uint16_t*>(to) = static_cast<const uint16_t*>(table)[entry];
  } else {
    *to = static_cast<const uint8_t*>(table)[entry];
  }
}

/// Writes the elements at (u, v) of the output: the pixel's, or those of the last erased box that lies there.
HEADRACE_HD inline void store_pixel(const SampleJob& job, const OutputFormat& format, int u, int v, uint32_t pixel) {
  int value = -1;
  for (int i = 0; i < job.erased_count; ++i) {
    const Box& box = job.erased[i].box;
    const bool inside = u >= box.x && u < box.x + box.width && v >= box.y && v < box.y + box.height;
    value = inside ? job.erased[i].value : value;
  }
  uint8_t* to = job.output + v * format.row_stride + u * format.pixel_stride;
  for (int c = 0; c < format.channels; ++c, to += format.channel_stride) {
    if (value < 0) {
      store_element(to, format.lut, c * 256 + static_cast<int>(pixel >> 8 * c & 255), format.element_bytes);
    } else {
      store_element(to, format.erased, value * format.channels + c, format.element_bytes);
    }
  }
}

/// One block of the launch: a tile of one sample's picture.
template <class Threads>
HEADRACE_HD void fuse_block(Threads& threads, BlockMemory& block, const FuseLaunch& launch, int number) {
  const int tiles = launch.tiles_x() * launch.tiles_y(), tile = number % tiles;
  const SampleJob& job = launch.jobs[number / tiles];
  if (job.skip) return;
  const int left = tile % launch.tiles_x() * kTile, top = tile / launch.tiles_x() * kTile;
  const int right = left + kTile < job.last.width ? left + kTile : job.last.width;
  const int bottom = top + kTile < job.last.height ? top + kTile : job.last.height;
  if (left >= right || top >= bottom) return;
  const IntRange x = shown(job.last, true, left, right), y = shown(job.last, false, top, bottom);
  if (x.size() > 0 && y.size() > 0) {
    if (job.vertical_first) {
      resize_tile<true>(threads, block, job, x, y);
    } else {
      resize_tile<false>(threads, block, job, x, y);
    }
  }
  threads.each([&](int thread, ThreadMemory&) {
    const int u = left + thread % kTile;
    if (u >= right) return;
    const int column = job.last.column(u);
    for (int v = top + thread / kTile; v < bottom; v += kBlockThreads / kTile) {
      const int row = job.last.row(v);
      const bool filled = column < 0 || row < 0;
      const uint32_t pixel =
          job.last.tint(filled ? job.last.fill : block.stage[(row - y.begin) * kTile + (column - x.begin)]);
      if (job.retouch.count > 0) {
        job.retouch.picture[static_cast<ptrdiff_t>(v) * job.last.width + u] = pixel;
      } else {
        store_pixel(job, launch.format, u, v, pixel);
      }
    }
  });
}

}  // namespace headrace
