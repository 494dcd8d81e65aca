// The scans of a progressive JPEG: where each is in the file, what it codes, and with which Huffman tables.
//
// parse_jpeg_header has read the file before: the segments are complete, the tables are valid, every scan continues
// what the scans before it coded. Only what could read outside the data is checked again here.
#include "core/jpeg/progressive/scan_list.h"

#include <algorithm>

#include "core/jpeg/scan/find_ff.h"

namespace headrace {
namespace {

constexpr int kDht = 0xC4, kRst0 = 0xD0, kRst7 = 0xD7, kEoi = 0xD9, kSos = 0xDA, kDqt = 0xDB, kDri = 0xDD;

using Bytes = std::span<const uint8_t>;

struct Tables {
  std::array<HuffmanSpec, 4> dc, ac;
  bool read(Bytes body);
};

bool Tables::read(Bytes body) {
  while (!body.empty()) {
    if (body.size() < 17 || (body[0] & 15) > 3) return false;
    HuffmanSpec& spec = (body[0] >> 4 == 1 ? ac : dc)[body[0] & 15];
    size_t symbols = 0;
    for (size_t length = 1; length <= 16; ++length) symbols += spec.lengths[length] = body[length];
    if (symbols > spec.symbols.size() || body.size() < 17 + symbols) return false;
    spec.symbols.fill(0);
    std::copy_n(body.begin() + 17, symbols, spec.symbols.begin());
    body = body.subspan(17 + symbols);
  }
  return true;
}

bool read_scan(Bytes body, const JpegHeader& header, const Tables& tables, ProgressiveScan* scan) {
  const int count = body.empty() ? 0 : body[0];
  if (count < 1 || count > 3 || body.size() != 4 + 2 * static_cast<size_t>(count)) return false;
  const uint8_t* const rest = &body[1 + 2 * static_cast<size_t>(count)];
  scan->components = count;
  scan->first = rest[0];
  scan->last = rest[1];
  scan->high = rest[2] >> 4;
  scan->low = rest[2] & 15;
  if (scan->first > scan->last || scan->last > 63 || scan->low > 13) return false;
  if (scan->first == 0 ? scan->last != 0 : count != 1) return false;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const uint8_t id = body[1 + 2 * i], table = body[2 + 2 * i];
    uint8_t number = 0;
    while (number < header.components && header.component[number].id != id) ++number;
    if (number >= header.components || number >= 3) return false;
    scan->component[i] = number;
    if (scan->first == 0 && scan->high == 0) scan->dc[i] = tables.dc[table >> 4 & 3];
    if (scan->first != 0) scan->ac = tables.ac[table & 3];
  }
  return true;
}

/// The FF of the first marker in data[at:] that is no restart marker.
size_t end_of_scan(Bytes data, size_t at) {
  const uint8_t* const end = data.data() + data.size();
  const uint8_t* p = data.data() + at;
  for (;;) {
    p = find_marker(p, end);
    const uint8_t* marker = p;
    while (marker < end && *marker == 0xFF) ++marker;
    if (marker == end) return data.size();
    if (*marker != 0 && !(*marker >= kRst0 && *marker <= kRst7)) return static_cast<size_t>(p - data.data());
    p = marker + 1;
  }
}

}  // namespace

bool list_scans(Bytes data, const JpegHeader& header, std::vector<ProgressiveScan>* scans) {
  scans->clear();
  Tables tables;
  int restart_interval = 0;
  for (size_t at = 2;;) {
    while (at < data.size() && data[at] == 0xFF) ++at;
    if (at >= data.size()) return false;
    const int marker = data[at++];
    if (marker == kEoi) return !scans->empty();
    if (data.size() - at < 2) return false;
    const size_t length = static_cast<size_t>(data[at] << 8 | data[at + 1]);
    if (length < 2 || length > data.size() - at) return false;
    const Bytes body = data.subspan(at + 2, length - 2);
    at += length;
    if (marker == kDht) {
      if (!tables.read(body)) return false;
    } else if (marker == kDqt) {
      if (!scans->empty()) return false;  // libjpeg takes a component's table at its first scan
    } else if (marker == kDri) {
      if (body.size() != 2) return false;
      restart_interval = body[0] << 8 | body[1];
    } else if (marker == kSos) {
      if (scans->size() == kMostScans) return false;
      ProgressiveScan& scan = scans->emplace_back();
      if (!read_scan(body, header, tables, &scan)) return false;
      scan.restart_interval = restart_interval;
      scan.begin = at;
      scan.end = at = end_of_scan(data, at);
    }
  }
}

}  // namespace headrace
