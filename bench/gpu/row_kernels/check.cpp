// Compares the emulated kernels with headrace's own decoder, bit by bit: planes of random crops of a folder's files,
// and, with "damage", files with damaged bytes and wrong entry points, where both must refuse the same crops.
#include <cmath>
#include <cstdio>
#include <map>
#include <random>

#include "core/base/error.h"
#include "core/jpeg/decode/plane_decoder.h"
#include "host_jobs.h"

using namespace headrace;

namespace {

int mistakes = 0;

/// The samples that the decoder promises: those of blocks that hold pixels.
bool same_planes(const HostScan& scan, const PlaneLayout& layout, const uint8_t* a, const uint8_t* b) {
  for (int c = 0; c < scan.header.components; ++c) {
    const Plane& plane = layout.image.plane[c];
    const int right = std::min(plane.x0 + plane.stride, (plane.width + 7) / 8 * 8);
    const int bottom = std::min(plane.y0 + layout.rows[static_cast<size_t>(c)], (plane.height + 7) / 8 * 8);
    for (int y = plane.y0; y < bottom; ++y) {
      const size_t at =
          layout.offset[static_cast<size_t>(c)] + static_cast<size_t>(y - plane.y0) * static_cast<size_t>(plane.stride);
      if (std::memcmp(a + at, b + at, static_cast<size_t>(right - plane.x0)) != 0) return false;
    }
  }
  return true;
}

struct Counts {
  int crops = 0, equal = 0, both_refuse = 0, not_for_it = 0;
  std::map<std::string, int> why;
};

void compare_one(const std::string& path, std::span<const uint8_t> file, const JpegHeader& header, EntryPoints& table,
                 PlaneDecoder& decoder, Box box, Counts& counts) {
  const HostScan scan = host_scan(file, header);
  ScanBytes source;
  HostBatch batch;
  std::vector<EntryPoint> known;
  table.find(table.key_of(file), &known);
  ++counts.crops;
  if (const char* why = add_image(batch, scan, box, known, source)) {
    ++counts.not_for_it;
    ++counts.why[why];
    return;
  }
  const PlaneLayout layout = batch.layouts[0];
  // In memory without room at its ends, for AddressSanitizer.
  std::vector<uint32_t> exact(batch.bytes.begin(), batch.bytes.end());
  batch.bytes.swap(exact);
  NoWatch watch;
  emulate_entropy(batch, watch);
  emulate_invert(batch);
  for (const int16_t value : batch.coefficients[0])
    if (value != 0) {
      std::printf("%s: coefficients are left\n", path.c_str());
      ++mistakes;
      break;
    }
  std::vector<uint8_t> expected(layout.bytes, 0xCD);
  bool refused = false;
  std::string why;
  try {
    decoder.decode(file, header, layout, expected.data(), &table);
  } catch (const NeedsPillow& error) {
    refused = true;
    why = error.what();
  }
  if (refused != (batch.failed[0] != 0)) {
    std::printf("%s: %s refuses, and the other does not; crop %d %d %d %d; %s\n", path.c_str(),
                refused ? "the CPU" : "the kernel", box.x, box.y, box.width, box.height, why.c_str());
    ++mistakes;
  } else if (refused) {
    ++counts.both_refuse;
  } else if (!same_planes(scan, layout, batch.planes[0].data(), expected.data())) {
    std::printf("%s: planes differ; crop %d %d %d %d\n", path.c_str(), box.x, box.y, box.width, box.height);
    ++mistakes;
  } else {
    ++counts.equal;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "which folder?\n"), 2;
  const std::string folder = argv[1];
  const int crops = argc > 2 ? std::atoi(argv[2]) : 10;
  const bool damage = argc > 3;
  std::map<std::string, int> others;
  Counts counts;
  PlaneDecoder decoder(nullptr);
  std::mt19937_64 random(7);
  int taken = 0;
  for (const std::string& path : files_of(folder)) {
    std::vector<uint8_t> file = read_file(path);
    const JpegHeader header = parse_jpeg_header(file);
    if (const char* why = not_taken(header)) {
      ++others[why];
      continue;
    }
    if (int64_t{header.size.width} * header.size.height > 1 << 25) {
      ++others["so large that this comparison would take long"];
      continue;
    }
    ++taken;
    EntryPoints table(16 << 20);
    const auto learn = [&](EntryPoints* to) {
      const PlaneLayout whole = plane_layout(header, whole_image(header.size));
      std::vector<uint8_t> planes(whole.bytes);
      try {
        decoder.decode(file, header, whole, planes.data(), to);
      } catch (const NeedsPillow&) {
      }
    };
    learn(&table);
    if (!damage) compare_one(path, file, header, table, decoder, whole_image(header.size), counts);
    std::vector<EntryPoint> known;
    table.find(table.key_of(file), &known);
    for (int i = 0; i < crops; ++i) {
      const Box box = random_crop(header.size, random);
      if (!damage) {
        compare_one(path, file, header, table, decoder, box, counts);
        continue;
      }
      // Other bytes with the old entry points, or wrong entry points.
      std::vector<uint8_t> other = file;
      std::vector<EntryPoint> points = known;
      const size_t scan_size = header.scan_end - header.scan_begin;
      if (scan_size == 0) continue;
      if (random() % 4 != 0)
        for (size_t n = 1 + random() % 8; n > 0; --n)
          other[header.scan_begin + random() % scan_size] = static_cast<uint8_t>(random());
      if (random() % 2 != 0)
        for (EntryPoint& one : points)
          if (random() % 4 == 0) one.bit = static_cast<uint32_t>(random() % (scan_size * 8 + 64));
      const JpegHeader changed = parse_jpeg_header(other);
      if (not_taken(changed) != nullptr) continue;
      EntryPoints wrong(1 << 20);
      wrong.keep(wrong.key_of(other), points);
      compare_one(path, other, changed, wrong, decoder, box, counts);
    }
  }
  std::printf("%d files taken; %d crops: %d with equal planes, %d that both refuse, %d that are not for this decoder\n",
              taken, counts.crops, counts.equal, counts.both_refuse, counts.not_for_it);
  for (const auto& [why, count] : counts.why) std::printf("  not for it: %d crops: %s\n", count, why.c_str());
  for (const auto& [why, count] : others) std::printf("  not taken: %d: %s\n", count, why.c_str());
  std::printf("%d mistakes\n", mistakes);
  return mistakes != 0;
}
