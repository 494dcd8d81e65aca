// What a baseline scan needs to be decoded, read from a file's header: tables, blocks of an MCU, quantisation. Host
// code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "core/jpeg/huffman/huffman_table.h"
#include "core/jpeg/sequential/jpeg_header.h"

namespace headrace {

struct HostScan {
  JpegHeader header;
  HuffmanSpec dc[4], ac[4];
  uint16_t quant[4][64] = {};  // in the order of the file: zigzag
  struct Block {
    uint8_t component = 0, dc = 0, ac = 0, x = 0, y = 0;  // x, y: in the MCU
  };
  std::vector<Block> block;  // of an MCU
  int component_quant[4] = {};
  int mcu_width = 8, mcu_height = 8, columns = 0, rows = 0;  // of MCUs
  std::span<const uint8_t> data;                             // entropy-coded
};

inline std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& one : std::filesystem::recursive_directory_iterator(folder))
    if (one.is_regular_file()) found.push_back(one.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// Why this decoder does not take a file; null: it does.
inline const char* not_taken(const JpegHeader& header) {
  if (header.not_plain != nullptr) return header.not_plain;
  if (header.progressive) return "progressive";
  if (header.arithmetic) return "arithmetic";
  if (header.scans != 1) return "more than one scan";
  return nullptr;
}

/// `file`: taken. Reads the segments up to the scan once more, which are known to be whole.
inline HostScan host_scan(std::span<const uint8_t> file, const JpegHeader& header) {
  HostScan scan;
  scan.header = header;
  scan.data = file.subspan(header.scan_begin, header.scan_end - header.scan_begin);
  const auto u16 = [&](size_t at) { return static_cast<size_t>(file[at] << 8 | file[at + 1]); };
  size_t at = 2;
  int max_h = 1, max_v = 1;
  for (;;) {
    while (file[at] == 0xFF) ++at;
    const int marker = file[at++];
    const size_t end = at + u16(at);
    size_t p = at + 2;
    if (marker == 0xC4) {
      while (p < end) {
        HuffmanSpec& spec = (file[p] >> 4 ? scan.ac : scan.dc)[file[p] & 3];
        spec = {};
        size_t count = 0;
        for (size_t i = 1; i <= 16; ++i) count += spec.lengths[i] = file[p + i];
        for (size_t i = 0; i < count; ++i) spec.symbols[i] = file[p + 17 + i];
        p += 17 + count;
      }
    } else if (marker == 0xDB) {
      while (p < end) {
        const bool wide = file[p] >> 4 != 0;
        uint16_t* to = scan.quant[file[p++] & 3];
        for (int i = 0; i < 64; ++i, p += wide ? 2 : 1) to[i] = static_cast<uint16_t>(wide ? u16(p) : file[p]);
      }
    } else if (marker == 0xC0 || marker == 0xC1) {
      for (int i = 0; i < header.components; ++i) {
        scan.component_quant[i] = file[p + 8 + 3 * static_cast<size_t>(i)];
        max_h = std::max<int>(max_h, header.component[static_cast<size_t>(i)].h);
        max_v = std::max<int>(max_v, header.component[static_cast<size_t>(i)].v);
      }
    } else if (marker == 0xDA) {
      const int count = file[p];
      const bool single = count == 1;
      for (int i = 0; i < count; ++i) {
        const uint8_t tables = file[p + 2 + 2 * static_cast<size_t>(i)];
        const JpegComponent& component = header.component[static_cast<size_t>(i)];
        for (int y = 0; y < (single ? 1 : component.v); ++y)
          for (int x = 0; x < (single ? 1 : component.h); ++x)
            scan.block.push_back({static_cast<uint8_t>(i), static_cast<uint8_t>(tables >> 4),
                                  static_cast<uint8_t>(tables & 15), static_cast<uint8_t>(x), static_cast<uint8_t>(y)});
      }
      scan.mcu_width = 8 * (single ? 1 : max_h);
      scan.mcu_height = 8 * (single ? 1 : max_v);
      scan.columns = (header.size.width + scan.mcu_width - 1) / scan.mcu_width;
      scan.rows = (header.size.height + scan.mcu_height - 1) / scan.mcu_height;
      return scan;
    }
    at = end;
  }
}

/// The bytes of a scan without stuffing, up to the first restart marker.
inline std::vector<uint8_t> without_stuffing(std::span<const uint8_t> data) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < data.size(); ++i) {
    if (data[i] == 0xFF && i + 1 < data.size() && data[++i] != 0) break;
    bytes.push_back(data[i] == 0 && data[i - 1] == 0xFF && i > 0 ? 0xFF : data[i]);
  }
  return bytes;
}

}  // namespace headrace
