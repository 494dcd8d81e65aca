// The second kernel: one block of threads applies the effects of one sample. The same source runs on a GPU and, thread
// by thread, on the host.
//
// Effects that map bytes are composed into tables, which are applied lazily, on read. Counts and sums are of integers,
// so they do not depend on the order in which threads add to them.
#pragma once

#include "gpu/kernel/fuse_block.h"

namespace headrace {

/// Shared memory of a block.
struct RetouchMemory {
  uint8_t table[3 * 256];  // composed map of the picture's bytes, not applied yet; [channel][byte]
  uint8_t next[3 * 256];   // map of the current effect
  int32_t histogram[3 * 256];
  int64_t sum[kBlockThreads];  // luma, summed over each thread's pixels
  int mean;
};

/// Increments a count that other threads also increment.
HEADRACE_HD inline void add_one(int32_t* count) {
#if defined(__CUDA_ARCH__)
  atomicAdd(count, 1);
#else
  ++*count;
#endif
}

/// A pixel after a map of bytes.
HEADRACE_HD inline uint32_t looked_up(const uint8_t* table, uint32_t pixel) {
  return pack_rgbx(table[red(pixel)], table[256 + green(pixel)], table[512 + blue(pixel)]);
}

/// A pixel after an effect that mixes or moves its channels; unchanged by any other effect.
HEADRACE_HD inline uint32_t recoloured(const Effect& effect, uint32_t pixel) {
  switch (effect.kind) {
    case Effect::Kind::kGray:
      return grayed(pixel);
    case Effect::Kind::kSaturation:
      return saturated(pixel, effect.factor);
    case Effect::Kind::kHue:
      return turned(pixel, effect.amount);
    case Effect::Kind::kPermute:
      return permuted(pixel, effect.amount);
    default:
      return pixel;
  }
}

/// Fills block.next with the map of an effect that maps bytes. `picture`: the pixels before block.table is applied.
template <class Threads>
HEADRACE_HD void make_table(Threads& threads, RetouchMemory& block, const Effect& effect, const uint32_t* picture,
                            int64_t pixels) {
  const bool equalize = effect.kind == Effect::Kind::kEqualize;
  if (equalize || effect.kind == Effect::Kind::kAutocontrast) {
    threads.each([&](int thread, ThreadMemory&) {
      for (int i = thread; i < 3 * 256; i += kBlockThreads) block.histogram[i] = 0;
    });
    threads.each([&](int thread, ThreadMemory&) {
      for (int64_t i = thread; i < pixels; i += kBlockThreads) {
        const uint32_t pixel = looked_up(block.table, picture[i]);
        add_one(&block.histogram[red(pixel)]);
        add_one(&block.histogram[256 + green(pixel)]);
        add_one(&block.histogram[512 + blue(pixel)]);
      }
    });
    threads.each([&](int thread, ThreadMemory&) {
      if (thread >= 3) return;
      if (equalize) {
        equalize_table(block.histogram + thread * 256, block.next + thread * 256);
      } else {
        autocontrast_table(block.histogram + thread * 256, block.next + thread * 256);
      }
    });
    return;
  }
  if (effect.kind == Effect::Kind::kContrast) {
    threads.each([&](int thread, ThreadMemory&) {
      int64_t sum = 0;
      for (int64_t i = thread; i < pixels; i += kBlockThreads) sum += luma_of(looked_up(block.table, picture[i]));
      block.sum[thread] = sum;
    });
    threads.each([&](int thread, ThreadMemory&) {
      if (thread > 0) return;
      int64_t sum = 0;
      for (const int64_t part : block.sum) sum += part;
      block.mean = rounded_mean(sum, pixels);
    });
  }
  threads.each([&](int thread, ThreadMemory&) {
    for (int i = thread; i < 3 * 256; i += kBlockThreads) block.next[i] = mapped(effect, i & 255, block.mean);
  });
}

/// The pixel at column u and row v of a picture after a blur.
HEADRACE_HD inline uint32_t blurred(const Effect& effect, const float* weights, const uint32_t* picture, int width,
                                    int height, int u, int v) {
  const float *row = weights + effect.weights, *column = row + effect.width;
  float sum[3] = {0, 0, 0};
  for (int i = 0; i < effect.height; ++i) {
    const int64_t y = padded_source(v + i - effect.height / 2, height, PadMode::kReflect);
    for (int j = 0; j < effect.width; ++j) {
      const uint32_t pixel = picture[y * width + padded_source(u + j - effect.width / 2, width, PadMode::kReflect)];
      const float weight = column[i] * row[j];
      sum[0] = fused(weight, static_cast<float>(red(pixel)), sum[0]);
      sum[1] = fused(weight, static_cast<float>(green(pixel)), sum[1]);
      sum[2] = fused(weight, static_cast<float>(blue(pixel)), sum[2]);
    }
  }
  return pack_rgbx(blurred_byte(sum[0]), blurred_byte(sum[1]), blurred_byte(sum[2]));
}

/// Writes row v of a picture after a warp, which keeps its size.
HEADRACE_HD inline void warp_one_row(const SampleJob& job, const Effect& effect, const uint32_t* picture, int v,
                                     uint32_t* to) {
  const int64_t width = job.last.x.size;
  warp_row(
      job.retouch.warps[effect.amount], v, 0, job.last.x.size, job.last.x.size, job.last.y.size,
      [&](int x, int y) { return picture[y * width + x]; }, [&](int x, uint32_t pixel) { to[v * width + x] = pixel; });
}

/// The pixel at column u and row v of a picture after Sharpness.
HEADRACE_HD inline uint32_t sharpened(float factor, const uint32_t* picture, int width, int height, int u, int v) {
  const uint32_t* at = picture + static_cast<int64_t>(v) * width + u;
  if (u == 0 || v == 0 || u == width - 1 || v == height - 1) return *at;
  int sum[3] = {4 * red(*at), 4 * green(*at), 4 * blue(*at)};
  for (int y = -1; y <= 1; ++y) {
    for (int x = -1; x <= 1; ++x) {
      const uint32_t pixel = at[static_cast<int64_t>(y) * width + x];
      sum[0] += red(pixel);
      sum[1] += green(pixel);
      sum[2] += blue(pixel);
    }
  }
  return pack_rgbx(blended(smoothed(sum[0]), red(*at), factor), blended(smoothed(sum[1]), green(*at), factor),
                   blended(smoothed(sum[2]), blue(*at), factor));
}

/// Runs block `number` of the launch: the effects of one sample, then its output.
template <class Threads>
HEADRACE_HD void retouch_block(Threads& threads, RetouchMemory& block, const FuseLaunch& launch, int number) {
  const SampleJob& job = launch.jobs[number];
  if (job.skip || job.retouch.count == 0) return;
  uint32_t *picture = job.retouch.picture, *other = job.retouch.other;
  const int64_t pixels = static_cast<int64_t>(job.last.x.size) * job.last.y.size;
  const auto forget_table = [&] {
    threads.each([&](int thread, ThreadMemory&) {
      for (int i = thread; i < 3 * 256; i += kBlockThreads) block.table[i] = static_cast<uint8_t>(i);
      if (thread == 0) block.mean = 0;
    });
  };
  forget_table();
  for (int e = 0; e < job.retouch.count; ++e) {
    const Effect& effect = job.retouch.effects[e];
    if (is_table(effect.kind)) {
      make_table(threads, block, effect, picture, pixels);
      threads.each([&](int thread, ThreadMemory&) {
        for (int i = thread; i < 3 * 256; i += kBlockThreads) block.table[i] = block.next[(i & ~255) + block.table[i]];
      });
    } else {
      threads.each([&](int thread, ThreadMemory&) {
        for (int64_t i = thread; i < pixels; i += kBlockThreads) {
          picture[i] = recoloured(effect, looked_up(block.table, picture[i]));
        }
      });
      forget_table();
    }
    if (reads_other_pixels(effect.kind)) {
      threads.each([&](int thread, ThreadMemory&) {
        if (effect.kind == Effect::Kind::kWarp) {
          for (int v = thread; v < job.last.y.size; v += kBlockThreads) warp_one_row(job, effect, picture, v, other);
          return;
        }
        for (int64_t i = thread; i < pixels; i += kBlockThreads) {
          const int u = static_cast<int>(i % job.last.x.size), v = static_cast<int>(i / job.last.x.size);
          const int width = job.last.x.size, height = job.last.y.size;
          other[i] = effect.kind == Effect::Kind::kBlur
                         ? blurred(effect, job.retouch.weights, picture, width, height, u, v)
                         : sharpened(effect.factor, picture, width, height, u, v);
        }
      });
      uint32_t* const made = other;
      other = picture;
      picture = made;
    }
  }
  const TakeMap& after = job.retouch.after;
  threads.each([&](int thread, ThreadMemory&) {
    for (int v = thread / kTile; v < after.y.size; v += kBlockThreads / kTile) {
      const int row = after.row(v);
      for (int u = thread % kTile; u < after.x.size; u += kTile) {
        const int column = after.column(u);
        const bool filled = column < 0 || row < 0;
        const ptrdiff_t at = static_cast<ptrdiff_t>(row) * job.last.x.size + column;
        store_pixel(job, launch.format, u, v,
                    after.gray_if_needed(filled ? after.fill : looked_up(block.table, picture[at])));
      }
    }
  });
}

}  // namespace headrace
