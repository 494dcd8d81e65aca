// Makes the jobs of the kernels for the crop of a file whose rows of MCUs can be entered, and runs the kernels' source
// on the host.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "core/jpeg/planes/plane_layout.h"
#include "core/jpeg/scan/entry_points.h"
#include "core/jpeg/scan/scan_bytes.h"
#include "entropy_rows.h"
#include "host_scan.h"
#include "invert_blocks.h"

namespace headrace {

struct NoWatch {
  NoWatch& of(int) { return *this; }
  void group() {}
  void symbol(bool, bool, uint32_t) {}
  void short_of_words() {}
  void end(uint32_t) {}
};

/// A batch of images to decode. What is "of the device" is the host's memory here.
struct HostBatch {
  std::vector<JpegJob> images;
  std::vector<RowJob> rows;
  std::vector<int32_t> row_of_image;
  std::vector<RowsOfBlock> row_blocks;
  std::vector<uint32_t> bytes;     // chunks
  std::vector<size_t> scan_bytes;  // of each image, with stuffing
  std::vector<PlaneLayout> layouts;
  std::deque<std::vector<uint8_t>> planes;
  std::deque<std::vector<int16_t>> coefficients;
  std::vector<uint32_t> failed;
  int most_rows = kLanes;  // of a block of threads
};

/// Why the file's crop is not for this decoder: null where it was added.
inline const char* add_image(HostBatch& batch, const HostScan& scan, Box box, std::span<const EntryPoint> known,
                             ScanBytes& source, bool with_memory = true) {
  const JpegHeader& header = scan.header;
  const bool restarts = header.restart_interval != 0;
  if (restarts && header.restart_interval != scan.columns) return "restart markers that are not those of rows";
  const PlaneLayout layout = plane_layout(header, box);
  const int first_column = layout.left / scan.mcu_width, last_column = (layout.right - 1) / scan.mcu_width;
  const bool gray = header.components == 1;
  // In rows of MCUs. libjpeg counts the rows of gray images with sampling factors otherwise.
  const int per_imcu = gray ? header.component[0].v : 1;
  const int first_row = layout.first_imcu_row * per_imcu;
  const int last_row = std::min((layout.first_imcu_row + layout.imcu_rows) * per_imcu, scan.rows) - 1;
  const int whole_known = restarts                                          ? scan.rows
                          : static_cast<int>(known.size()) + 1 == scan.rows ? scan.rows
                                                                            : static_cast<int>(known.size());
  if (last_row >= whole_known) return "rows that are not known";

  JpegJob image;
  const int blocks = static_cast<int>(scan.block.size());
  uint8_t pair_dc[kTablePairs] = {}, pair_ac[kTablePairs] = {};
  image.pairs = 0;
  for (int i = 0; i < blocks; ++i) {
    const HostScan::Block& one = scan.block[static_cast<size_t>(i)];
    int pair = 0;
    while (pair < image.pairs && (pair_dc[pair] != one.dc || pair_ac[pair] != one.ac)) ++pair;
    if (pair == kTablePairs) return "more than two pairs of tables";
    if (pair == image.pairs) {
      ++image.pairs;
      pair_dc[pair] = one.dc;
      pair_ac[pair] = one.ac;
      const auto copy = [](const HuffmanSpec& from, CodeTable& to) {
        std::copy(from.lengths.begin() + 1, from.lengths.end(), to.lengths);
        std::copy(from.symbols.begin(), from.symbols.end(), to.symbols);
      };
      copy(scan.dc[one.dc], image.dc[pair]);
      copy(scan.ac[one.ac], image.ac[pair]);
    }
    const bool turns = !gray && (i + 1 == blocks || scan.block[static_cast<size_t>(i) + 1].component != one.component);
    image.pattern |= static_cast<uint32_t>(pair | (turns ? 2 : 0)) << (2 * i);
  }
  image.mcu_blocks = blocks;
  image.columns = last_column + 1 - first_column;
  image.skipped = first_column * blocks;
  image.wanted = image.columns * blocks;
  image.components = header.components;
  const int rows = last_row + 1 - first_row;
  if (with_memory) {
    batch.planes.emplace_back(layout.bytes, uint8_t{0xCD});
    batch.coefficients.emplace_back(static_cast<size_t>(rows) * static_cast<size_t>(image.wanted) * 64);
    image.coefficients = batch.coefficients.back().data();
  }
  int first_block = 0;
  for (int c = 0; c < header.components; ++c) {
    PlaneJob& plane = image.plane[c];
    const JpegComponent& component = header.component[static_cast<size_t>(c)];
    plane.h = gray ? 1 : component.h;
    plane.v = gray ? 1 : component.v;
    plane.stride = layout.image.plane[c].stride;
    plane.width = image.columns * plane.h;
    plane.blocks = plane.width * rows * plane.v;
    plane.first = static_cast<uint8_t>(first_block);
    first_block += plane.h * plane.v;
    std::copy(std::begin(scan.quant[scan.component_quant[c]]), std::end(scan.quant[scan.component_quant[c]]),
              plane.quant);
    if (with_memory) plane.samples = batch.planes.back().data() + layout.offset[static_cast<size_t>(c)];
  }

  // Bytes of the rows, without stuffing.
  const int number = static_cast<int>(batch.images.size());
  const size_t first_of_image = batch.rows.size();
  source.begin(scan.data, 16);
  size_t read = 0;
  for (int row = first_row; row <= last_row; ++row) {
    EntryPoint point;
    if (restarts) {
      if (!source.enter(row)) return "restart markers are missing";
    } else {
      if (row > 0) point = known[static_cast<size_t>(row) - 1];
      const size_t from = point.bit / 8;
      // The list may hold the end of the last row, too.
      const bool open = static_cast<size_t>(row) == known.size();
      const size_t to = open ? scan.data.size() : known[static_cast<size_t>(row)].bit / 8 + 2;
      source.enter_at(from, to);
      read += std::min(to, scan.data.size()) - std::min(from, scan.data.size());
    }
    RowJob job;
    job.first_chunk = static_cast<uint32_t>(batch.bytes.size() / kChunkWords);
    job.chunks = static_cast<uint32_t>(std::max<size_t>((source.size() + 15) / 16, 1));
    job.first_bit = point.bit % 8;
    job.most_bits = static_cast<uint32_t>(source.size() * 8);
    const bool to_edge = last_column + 1 == scan.columns;
    job.least_bits = restarts && to_edge && row < last_row && source.size() != 0 ? job.most_bits - 7 : 0;
    std::copy(point.dc.begin(), point.dc.end(), job.dc);
    const size_t at = batch.bytes.size();
    batch.bytes.resize(at + job.chunks * kChunkWords);
    std::memcpy(batch.bytes.data() + at, source.data(), source.size());
    batch.rows.push_back(job);
    batch.row_of_image.push_back(row - first_row);
    if (restarts) read += source.size();
  }
  batch.scan_bytes.push_back(read);
  // The longest first, so that threads of a warp end at about the same time.
  std::vector<size_t> order(batch.rows.size() - first_of_image);
  for (size_t i = 0; i < order.size(); ++i) order[i] = first_of_image + i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return batch.rows[a].most_bits > batch.rows[b].most_bits; });
  std::vector<RowJob> sorted;
  std::vector<int32_t> sorted_numbers;
  for (size_t i : order) {
    sorted.push_back(batch.rows[i]);
    sorted_numbers.push_back(batch.row_of_image[i]);
  }
  std::copy(sorted.begin(), sorted.end(), batch.rows.begin() + static_cast<ptrdiff_t>(first_of_image));
  std::copy(sorted_numbers.begin(), sorted_numbers.end(),
            batch.row_of_image.begin() + static_cast<ptrdiff_t>(first_of_image));
  const int parts = (rows + batch.most_rows - 1) / batch.most_rows;
  for (int part = 0; part < parts; ++part) {
    const int from = rows * part / parts, to = rows * (part + 1) / parts;
    batch.row_blocks.push_back({number, static_cast<int32_t>(first_of_image) + from, to - from, 0});
  }
  batch.images.push_back(image);
  batch.layouts.push_back(layout);
  batch.failed.push_back(0);
  return nullptr;
}

inline JpegLaunch launch_of(HostBatch& batch) {
  return {batch.images.data(),     batch.rows.data(),  batch.row_of_image.data(),
          batch.row_blocks.data(), batch.bytes.data(), batch.failed.data()};
}

/// Threads as a loop, forwards and backwards in turns.
class HostThreads {
 public:
  explicit HostThreads(int count) : count_(count) {}
  template <class Step>
  void each(Step step) {
    for (int i = 0; i < count_; ++i) step(backwards_ ? count_ - 1 - i : i);
    backwards_ = !backwards_;
  }

 private:
  int count_;
  bool backwards_ = false;
};

template <class Watches>
void emulate_entropy(HostBatch& batch, Watches& watches) {
  const JpegLaunch launch = launch_of(batch);
  const auto memory = std::make_unique<EntropyMemory>();
  HostThreads threads(kLanes);
  for (size_t i = 0; i < batch.row_blocks.size(); ++i) {
    std::memset(memory.get(), 0xCD, sizeof *memory);
    entropy_block(threads, *memory, launch, static_cast<int>(i), watches);
  }
}

inline void emulate_invert(HostBatch& batch) {
  const auto memory = std::make_unique<InvertMemory>();
  HostThreads threads(kInvertThreads);
  for (const JpegJob& image : batch.images)
    for (int c = 0; c < image.components; ++c)
      for (int piece = 0; piece * kInvertBlocks < image.plane[c].blocks; ++piece)
        invert_block_of(threads, *memory, image, image.plane[c], piece);
}

/// torchvision's RandomResizedCrop.
template <class Random>
Box random_crop(Size size, Random& random) {
  const auto uniform = [&](double a, double b) {
    return a + (b - a) * (static_cast<double>(random() >> 11) * 0x1p-53);
  };
  for (int i = 0; i < 10; ++i) {
    const double area = size.width * static_cast<double>(size.height) * uniform(0.08, 1);
    const double ratio = std::exp(uniform(std::log(3. / 4), std::log(4. / 3)));
    const int w = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const int h = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (w < 1 || h < 1 || w > size.width || h > size.height) continue;
    return {static_cast<int>(uniform(0, size.width - w + 1)), static_cast<int>(uniform(0, size.height - h + 1)), w, h};
  }
  const int edge = std::min(size.width, size.height);
  return {(size.width - edge) / 2, (size.height - edge) / 2, edge, edge};
}

}  // namespace headrace
