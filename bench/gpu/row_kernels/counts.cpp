// Counts what the kernels would do for batches of 256 random crops: symbols, steps of warps (the most of their
// threads), rare paths, bytes; and measures the host's work for an image. Prints a line for each number of rows in a
// warp.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "core/base/error.h"
#include "core/jpeg/decode/plane_decoder.h"
#include "host_jobs.h"

using namespace headrace;

namespace {

struct RowWatch {
  uint32_t groups = 0, symbols = 0, all = 0, shorts = 0, bits = 0;
  std::vector<uint32_t> long_at, done_at, short_at;
  void group() { ++groups; }
  void symbol(bool active, bool is_long, uint32_t k) {
    if (active && k == 0 && all > 0) done_at.push_back(all - 1);
    if (is_long && active) long_at.push_back(all);
    symbols += active;
    ++all;
  }
  void short_of_words() { short_at.push_back(groups); }
  void end(uint32_t used) { bits = used; }
};

struct Watches {
  std::vector<RowWatch> rows;
  RowWatch& of(int row) { return rows[static_cast<size_t>(row)]; }
};

struct Image {
  std::vector<uint8_t> file;
  JpegHeader header;
  std::vector<EntryPoint> known;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "which folder?\n"), 2;
  const std::string folder = argv[1];
  const int images_in_batch = argc > 2 ? std::atoi(argv[2]) : 256, batches = argc > 3 ? std::atoi(argv[3]) : 4;
  EntryPoints table(256 << 20);
  PlaneDecoder decoder(nullptr);
  std::vector<Image> images;
  std::vector<std::string> paths;
  for (const std::string& path : files_of(folder)) {
    Image image{read_file(path), {}, {}};
    image.header = parse_jpeg_header(image.file);
    if (not_taken(image.header) != nullptr) continue;
    const PlaneLayout whole = plane_layout(image.header, whole_image(image.header.size));
    std::vector<uint8_t> planes(whole.bytes);
    try {
      decoder.decode(image.file, image.header, whole, planes.data(), &table);
    } catch (const NeedsPillow&) {
      continue;
    }
    table.find(table.key_of(image.file), &image.known);
    paths.push_back(path);
    images.push_back(std::move(image));
  }
  std::printf("%zu files\n", images.size());
  for (const int most_rows : {32, 16, 8, 4}) {
    std::mt19937_64 random(11);
    double rows = 0, blocks = 0, skipped = 0, symbols = 0, bits = 0, bytes = 0, scan_bytes = 0, warps = 0, groups = 0,
           longs = 0, dones = 0, shorts = 0, longest = 0, pieces = 0, long_symbols = 0, plane_bytes = 0,
           most_pieces = 0, coefficients = 0;
    std::vector<double> warp_steps;
    uint32_t longest_ever = 0;
    for (int b = 0; b < batches; ++b) {
      HostBatch batch;
      batch.most_rows = most_rows;
      ScanBytes source;
      for (int i = 0; i < images_in_batch; ++i) {
        const Image& image = images[random() % images.size()];
        const HostScan scan = host_scan(image.file, image.header);
        if (const char* why = add_image(batch, scan, random_crop(image.header.size, random), image.known, source))
          std::printf("not for it: %s\n", why);
      }
      Watches watches{std::vector<RowWatch>(batch.rows.size())};
      emulate_entropy(batch, watches);
      rows += static_cast<double>(batch.rows.size());
      warps += static_cast<double>(batch.row_blocks.size());
      bytes += static_cast<double>(batch.bytes.size()) * 4;
      for (size_t one : batch.scan_bytes) scan_bytes += static_cast<double>(one);
      for (const RowWatch& row : watches.rows) {
        symbols += row.symbols;
        bits += row.bits;
        long_symbols += static_cast<double>(row.long_at.size());
      }
      int batch_pieces = 0;
      for (size_t i = 0; i < batch.images.size(); ++i) {
        const JpegJob& image = batch.images[i];
        plane_bytes += static_cast<double>(batch.layouts[i].bytes);
        for (int c = 0; c < image.components; ++c) {
          const int count = (image.plane[c].blocks + kInvertBlocks - 1) / kInvertBlocks;
          pieces += count;
          batch_pieces = std::max(batch_pieces, count);
          blocks += image.plane[c].blocks;
        }
        coefficients += static_cast<double>(batch.coefficients[i].size());
      }
      most_pieces += batch_pieces;
      uint32_t batch_longest = 0;
      for (const RowsOfBlock& block : batch.row_blocks) {
        uint32_t most = 0;
        std::vector<uint32_t> any_long, any_done, any_short;
        for (int i = block.first; i < block.first + block.count; ++i) {
          const RowWatch& row = watches.rows[static_cast<size_t>(i)];
          most = std::max(most, row.groups);
          any_long.insert(any_long.end(), row.long_at.begin(), row.long_at.end());
          any_done.insert(any_done.end(), row.done_at.begin(), row.done_at.end());
          any_short.insert(any_short.end(), row.short_at.begin(), row.short_at.end());
          skipped += batch.images[static_cast<size_t>(block.image)].skipped;
        }
        const auto distinct = [](std::vector<uint32_t>& v) {
          std::sort(v.begin(), v.end());
          return static_cast<double>(std::unique(v.begin(), v.end()) - v.begin());
        };
        longs += distinct(any_long);
        dones += distinct(any_done);
        shorts += distinct(any_short);
        groups += most;
        batch_longest = std::max(batch_longest, most);
        warp_steps.push_back(most * double{kGroup});
      }
      longest += batch_longest;
      longest_ever = std::max(longest_ever, batch_longest);
    }
    const double n = static_cast<double>(images_in_batch) * batches, steps = groups * kGroup;
    std::sort(warp_steps.begin(), warp_steps.end());
    std::printf(
        "%d rows in a warp, %d batches of %d: an image: %.1f rows, %.0f wanted blocks, %.0f skipped, %.0f symbols "
        "(%.2f bits each), "
        "%.0f bytes to copy (of %.0f in the file's rows), planes %.0f bytes, coefficients %.0f bytes, %.1f pieces of "
        "32 blocks\n",
        most_rows, batches, images_in_batch, rows / n, blocks / n, skipped / n, symbols / n, bits / symbols, bytes / n,
        scan_bytes / n, plane_bytes / n, coefficients * 2 / n, pieces / n);
    std::printf(
        "   a batch: %.0f warps, %.0f warp steps (threads at work: %.3f of 32), steps of a warp: 50%% %.0f, 90%% %.0f, "
        "99%% %.0f; "
        "longest warp %.0f steps in the mean, %u at most; grid of pieces: %.0f\n",
        warps / batches, steps / batches, symbols / (steps * 32), warp_steps[warp_steps.size() / 2],
        warp_steps[warp_steps.size() * 9 / 10], warp_steps[warp_steps.size() * 99 / 100], longest * kGroup / batches,
        longest_ever * kGroup, most_pieces / batches);
    std::printf(
        "   long codes: %.4f of the symbols, so the path is taken in %.3f of the steps; an end of block in %.3f; short "
        "of words in "
        "%.4f of the groups\n",
        long_symbols / symbols, longs / steps, dones / steps, shorts / groups);
  }
  // The host's work for an image, in a thread, the bytes in memory: the fastest of a few rounds.
  double best[5] = {1e9, 1e9, 1e9, 1e9, 1e9};
  HostBatch batch;
  ScanBytes source;
  std::vector<EntryPoint> known;
  std::vector<uint8_t> room(4 << 20);
  for (int round = 0; round < 25; ++round) {
    std::mt19937_64 random(5);
    double spent[5] = {};
    batch.bytes.clear();
    batch.rows.clear();
    batch.row_of_image.clear();
    batch.row_blocks.clear();
    batch.images.clear();
    batch.layouts.clear();
    batch.failed.clear();
    batch.scan_bytes.clear();
    for (size_t i = 0; i < 256; ++i) {
      const size_t at = random() % images.size();
      const Image& image = images[at];
      const double t0 = now();
      const int descriptor = open(paths[at].c_str(), O_RDONLY);
      const ssize_t got = read(descriptor, room.data(), room.size());
      close(descriptor);
      const double t1 = now();
      if (got != static_cast<ssize_t>(image.file.size())) return 1;
      const JpegHeader header = parse_jpeg_header(image.file);
      const double t2 = now();
      table.find(table.key_of(image.file), &known);
      const double t3 = now();
      const HostScan scan = host_scan(image.file, header);
      const double t4 = now();
      add_image(batch, scan, random_crop(header.size, random), known, source, false);
      const double t5 = now();
      const double parts[5] = {t1 - t0, t2 - t1, t3 - t2, t4 - t3, t5 - t4};
      for (int k = 0; k < 5; ++k) spent[k] += parts[k];
    }
    for (int k = 0; k < 5; ++k) best[k] = std::min(best[k], spent[k] / 256 * 1e6);
  }
  std::printf(
      "us of an image on the host: header %.1f, hash and look-up %.1f, tables %.1f, rows without stuffing and jobs "
      "%.1f "
      "(open, read and close of a file in the page cache: %.1f)\n",
      best[1], best[2], best[3], best[4], best[0]);
}
