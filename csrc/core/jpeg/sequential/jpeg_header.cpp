// Reads a JPEG's markers without decoding: size, sampling, coding, and whether it is plain enough for the native
// decoder.
//
// A plain file is one that two parsers accept and interpret alike: Pillow's Python parser, which reads the segments up
// to the first SOS, and libjpeg, which reads all of them. Each refusal below is a file that one of them rejects, warns
// about, or reads differently. Damage inside entropy-coded data is found only by the decoder.
#include "core/jpeg/sequential/jpeg_header.h"

#include <algorithm>

#include "core/jpeg/scan/find_ff.h"
#include "core/jpeg/sequential/jpeg_metadata.h"

namespace headrace {
namespace {

constexpr int kMaxDimension = 65500;    // JPEG_MAX_DIMENSION of libjpeg
constexpr int kMaxScans = 500;          // real files have about ten; each one costs a pass over all coefficients
constexpr int kMaxBlocksInMcu = 10;     // D_MAX_BLOCKS_IN_MCU of libjpeg
constexpr int kMaxDcSymbol = 15;        // a DC symbol is a number of bits
constexpr int kMaxPointTransform = 13;  // Al in libjpeg's progressive decoder

constexpr int kSof0 = 0xC0, kSof2 = 0xC2, kDht = 0xC4, kJpg = 0xC8, kDac = 0xCC, kSof15 = 0xCF;
constexpr int kRst0 = 0xD0, kEoi = 0xD9, kSos = 0xDA, kDqt = 0xDB, kDri = 0xDD;
constexpr int kApp0 = 0xE0, kApp15 = 0xEF, kCom = 0xFE;

using Bytes = std::span<const uint8_t>;

int read_u16(Bytes bytes, size_t at) { return bytes[at] << 8 | bytes[at + 1]; }

struct Scan {
  int count = 0;
  std::array<int, 4> component{}, dc_table{}, ac_table{};  // component: index into JpegHeader::component
  int first = 0, last = 0, high = 0, low = 0;              // Ss, Se, Ah, Al
};

class Parser {
 public:
  Parser(Bytes data, JpegHeader& out) : data_(data), out_(out) {}
  void run() {
    walk();
    out_.jfif = metadata_.jfif;
    out_.adobe_transform = metadata_.adobe_transform;
    out_.exif_orientation = metadata_.exif_orientation;
    out_.turned = metadata_.turned();
  }

 private:
  void walk();
  // Each function returns false if parsing cannot continue. refuse() records the first reason.
  bool refuse(const char* reason) {
    if (out_.not_plain == nullptr) out_.not_plain = reason;
    return false;
  }
  bool next_marker(int* marker);
  bool segment(Bytes* body);
  bool read_frame(int marker, Bytes body);
  bool read_quantization(Bytes body);
  bool read_huffman(Bytes body);
  bool read_scan(Bytes body, Scan* scan);
  bool colours_known();
  bool allowed(const Scan& scan);
  bool progression_allowed(const Scan& scan);
  bool skip_entropy_coded(const Scan& scan);
  bool complete();
  int64_t mcus(const Scan& scan) const;

  Bytes data_;
  size_t at_ = 0;
  JpegHeader& out_;
  JpegMetadata metadata_;
  bool frame_seen_ = false;
  int restart_interval_ = 0, max_h_ = 1, max_v_ = 1;
  std::array<uint8_t, 4> quantization_table_{};  // of each component
  std::array<bool, 4> quantization_seen_{}, dc_seen_{}, ac_seen_{};
  // For each coefficient the number of low bits still missing; -1: no scan has coded it. As coef_bits in libjpeg.
  std::array<std::array<int8_t, 64>, 4> missing_bits_{};
};

bool Parser::next_marker(int* marker) {
  if (at_ >= data_.size() || data_[at_] != 0xFF) return refuse("bytes that belong to no segment, or a missing EOI");
  while (at_ < data_.size() && data_[at_] == 0xFF) ++at_;  // any number of fill bytes may precede a marker
  if (at_ >= data_.size()) return refuse("no EOI");
  *marker = data_[at_++];
  return true;
}

bool Parser::segment(Bytes* body) {
  if (data_.size() - at_ < 2) return refuse("a segment cut short");
  const size_t length = static_cast<size_t>(read_u16(data_, at_));
  if (length < 2 || length > data_.size() - at_) return refuse("a segment cut short");
  *body = data_.subspan(at_ + 2, length - 2);
  at_ += length;
  return true;
}

bool Parser::read_frame(int marker, Bytes body) {
  if (frame_seen_) return refuse("two frames");
  if (body.size() < 6) return refuse("a frame header cut short");
  frame_seen_ = true;
  out_.size = {read_u16(body, 3), read_u16(body, 1)};
  out_.frame = marker;
  out_.progressive = (marker & 3) == 2;
  out_.arithmetic = marker >= kJpg;
  const int components = body[5];
  if (components > 4 || body.size() != 6 + 3 * static_cast<size_t>(components))
    return refuse("an unsupported number of components");
  out_.components = components;
  for (size_t i = 0; i < static_cast<size_t>(components); ++i) {
    const uint8_t* entry = &body[6 + 3 * i];
    out_.component[i] = {entry[0], static_cast<uint8_t>(entry[1] >> 4), static_cast<uint8_t>(entry[1] & 15)};
    quantization_table_[i] = entry[2];
    missing_bits_[i].fill(-1);
    for (size_t j = 0; j < i; ++j)
      if (out_.component[j].id == entry[0]) refuse("two components with one id");
    max_h_ = std::max<int>(max_h_, out_.component[i].h);
    max_v_ = std::max<int>(max_v_, out_.component[i].v);
  }
  if (body[0] != 8) return refuse("not 8 bits per sample");
  if (out_.arithmetic) return refuse("arithmetic coding");
  if (marker > kSof2) return refuse("lossless or hierarchical coding");
  if (components != 1 && components != 3)
    return refuse(components == 4 ? "CMYK or YCCK" : "an unsupported number of components");
  if (out_.size.width < 1 || out_.size.height < 1) return refuse("an empty image");
  if (out_.size.width > kMaxDimension || out_.size.height > kMaxDimension) return refuse("an edge above 65500 pixels");
  for (int i = 0; i < components; ++i) {
    const JpegComponent& c = out_.component[static_cast<size_t>(i)];
    if (c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4) return refuse("a sampling factor outside 1 to 4");
    if (max_h_ % c.h != 0 || max_v_ % c.v != 0) return refuse("fractional sampling");
  }
  return true;
}

bool Parser::read_quantization(Bytes body) {
  while (!body.empty()) {
    const int bytes_each = body[0] >> 4, table = body[0] & 15;
    const size_t length = bytes_each == 0 ? 65 : 129;
    if (bytes_each > 1 || table > 3 || body.size() < length) return refuse("an invalid quantization table");
    quantization_seen_[static_cast<size_t>(table)] = true;
    body = body.subspan(length);
  }
  return true;
}

bool Parser::read_huffman(Bytes body) {
  constexpr const char* kOdd = "an invalid Huffman table";
  while (!body.empty()) {
    const bool ac = body[0] >> 4 == 1;
    const size_t table = body[0] & 15;
    if (body[0] >> 4 > 1 || table > 3 || body.size() < 17) return refuse(kOdd);
    size_t symbols = 0;
    uint32_t next_code = 0;
    for (size_t length = 1; length <= 16; ++length) {
      symbols += body[length];
      next_code += body[length];
      // No code may be all ones (libjpeg rejects the table).
      if (body[length] != 0 && next_code >= (1u << length)) return refuse(kOdd);
      next_code <<= 1;
    }
    if (symbols > 256 || body.size() < 17 + symbols) return refuse(kOdd);
    for (size_t i = 0; !ac && i < symbols; ++i)
      if (body[17 + i] > kMaxDcSymbol) return refuse(kOdd);
    (ac ? ac_seen_ : dc_seen_)[table] = true;
    body = body.subspan(17 + symbols);
  }
  return true;
}

bool Parser::read_scan(Bytes body, Scan* scan) {
  constexpr const char* kOdd = "an invalid scan header";
  if (!frame_seen_) return refuse("a scan without a frame");
  if (body.empty() || body[0] < 1 || body[0] > out_.components || body.size() != 4 + 2 * static_cast<size_t>(body[0]))
    return refuse(kOdd);
  scan->count = body[0];
  int index = 0;
  for (size_t i = 0; i < body[0]; ++i, ++index) {
    const uint8_t* entry = &body[1 + 2 * i];
    // The standard requires the frame's order.
    while (index < out_.components && out_.component[static_cast<size_t>(index)].id != entry[0]) ++index;
    if (index == out_.components) return refuse(kOdd);
    scan->component[i] = index;
    scan->dc_table[i] = entry[1] >> 4;
    scan->ac_table[i] = entry[1] & 15;
  }
  const uint8_t* rest = &body[1 + 2 * static_cast<size_t>(scan->count)];
  scan->first = rest[0];
  scan->last = rest[1];
  scan->high = rest[2] >> 4;
  scan->low = rest[2] & 15;
  return true;
}

/// Whether libjpeg recognises gray, YCbCr or RGB, and neither it nor Pillow warns about the application segments.
bool Parser::colours_known() {
  if (const char* doubt = metadata_.verdict()) return refuse(doubt);
  if (out_.components == 3 && !metadata_.jfif && metadata_.adobe_transform > 1)
    return refuse("an unknown Adobe colour transform");
  return true;
}

bool Parser::allowed(const Scan& scan) {
  int blocks = 0;
  for (size_t i = 0; i < static_cast<size_t>(scan.count); ++i) {
    const size_t component = static_cast<size_t>(scan.component[i]);
    const size_t quantization = quantization_table_[component];
    blocks += out_.component[component].h * out_.component[component].v;
    if (quantization > 3 || !quantization_seen_[quantization]) return refuse("a quantization table is missing");
    const bool needs_dc = scan.first == 0 && (!out_.progressive || scan.high == 0);
    const bool needs_ac = scan.last > 0;
    const size_t dc = static_cast<size_t>(scan.dc_table[i]), ac = static_cast<size_t>(scan.ac_table[i]);
    if (needs_dc && (dc > 3 || !dc_seen_[dc])) return refuse("a Huffman table is missing");
    if (needs_ac && (ac > 3 || !ac_seen_[ac])) return refuse("a Huffman table is missing");
  }
  if (scan.count > 1 && blocks > kMaxBlocksInMcu) return refuse("too many blocks in an MCU");
  return progression_allowed(scan);
}

bool Parser::progression_allowed(const Scan& scan) {
  constexpr const char* kOdd = "an invalid order of scans";
  if (!out_.progressive) {
    if (scan.first != 0 || scan.last != 63 || scan.high != 0 || scan.low != 0) return refuse(kOdd);
  } else {
    if (scan.first > scan.last || scan.last > 63 || scan.low > kMaxPointTransform) return refuse(kOdd);
    if (scan.first == 0 && scan.last != 0) return refuse(kOdd);
    if (scan.first > 0 && scan.count != 1) return refuse(kOdd);
    if (scan.high != 0 && scan.low != scan.high - 1) return refuse(kOdd);
  }
  for (size_t i = 0; i < static_cast<size_t>(scan.count); ++i) {
    auto& missing = missing_bits_[static_cast<size_t>(scan.component[i])];
    if (scan.first > 0 && missing[0] < 0) return refuse(kOdd);
    for (size_t k = static_cast<size_t>(scan.first); k <= static_cast<size_t>(scan.last); ++k) {
      // Only the first pass of a coefficient has high = 0; each later pass continues where the last one ended.
      const bool first_time = missing[k] < 0;
      if (first_time ? scan.high != 0 : (scan.high == 0 || scan.high != missing[k])) return refuse(kOdd);
      missing[k] = static_cast<int8_t>(scan.low);
    }
  }
  return true;
}

/// Requires all bits of all coefficients: else libjpeg smooths across blocks, in ways that differ between its versions.
bool Parser::complete() {
  for (size_t i = 0; i < static_cast<size_t>(out_.components); ++i)
    for (const int8_t bits : missing_bits_[i])
      if (bits != 0) return refuse("scans that omit bits of coefficients");
  return true;
}

int64_t Parser::mcus(const Scan& scan) const {
  int64_t h = 8 * max_h_, v = 8 * max_v_, width = out_.size.width, height = out_.size.height;
  if (scan.count == 1) {  // not interleaved: an MCU is one block of the component
    const JpegComponent& c = out_.component[static_cast<size_t>(scan.component[0])];
    width *= c.h;
    height *= c.v;
  }
  return divide_up(width, h) * divide_up(height, v);
}

/// Moves at_ to the FF of the marker that ends the scan.
bool Parser::skip_entropy_coded(const Scan& scan) {
  int64_t restarts = 0;
  const uint8_t* const end = data_.data() + data_.size();
  const uint8_t* p = data_.data() + at_;
  for (;;) {
    p = find_marker(p, end);
    if (end - p < 2) return refuse("no EOI");
    const uint8_t* marker = p + 1;
    while (marker < end && *marker == 0xFF) ++marker;
    if (marker == end) return refuse("no EOI");
    if (*marker < kRst0 || *marker >= kRst0 + 8) {
      if (*marker == 0) return refuse("invalid fill bytes in a scan");
      break;
    }
    if (restart_interval_ == 0 || *marker != kRst0 + restarts % 8) return refuse("restart markers out of order");
    ++restarts;
    p = marker + 1;
  }
  at_ = static_cast<size_t>(p - data_.data());
  if (restart_interval_ > 0 && restarts != (mcus(scan) - 1) / restart_interval_)
    return refuse("restart markers are missing");
  return true;
}

void Parser::walk() {
  // Pillow requires FF D8 FF.
  if (data_.size() < 4 || data_[0] != 0xFF || data_[1] != 0xD8 || data_[2] != 0xFF) {
    refuse("not a JPEG");
    return;
  }
  at_ = 2;
  for (int marker = 0; next_marker(&marker);) {
    if (marker == kEoi) {
      if (out_.scans == 0) {
        refuse("no scan");
      } else {
        complete();  // neither parser reads past an EOI
      }
      return;
    }
    Bytes body;
    const bool has_body = marker >= kSof0 && marker <= kCom && !(marker >= kRst0 && marker < kEoi);
    if (!has_body) {
      refuse("a marker out of place");
      return;
    }
    if (!segment(&body)) return;
    bool go_on = true;
    if (marker == kDht) {
      go_on = read_huffman(body);
    } else if (marker == kDac || marker == kJpg) {
      go_on = refuse("arithmetic coding");
    } else if (marker >= kSof0 && marker <= kSof15) {
      go_on = read_frame(marker, body);
    } else if (marker == kDqt) {
      go_on = read_quantization(body);
    } else if (marker == kDri) {
      go_on = body.size() == 2 || refuse("an invalid restart interval");
      if (go_on) restart_interval_ = read_u16(body, 0);
    } else if (marker >= kApp0 && marker <= kApp15) {
      if (out_.scans == 0) metadata_.read_app(marker, body);  // both parsers ignore later ones
    } else if (marker == kSos) {
      Scan scan;
      if (!read_scan(body, &scan)) return;
      if (out_.scans == 0) {
        out_.restart_interval = restart_interval_;
        out_.scan_begin = at_;
        if (!colours_known()) return;
      }
      if (++out_.scans > kMaxScans) go_on = refuse("too many scans");
      go_on = go_on && allowed(scan) && skip_entropy_coded(scan);
      if (go_on && out_.scans == 1) out_.scan_end = at_;
    } else if (marker != kCom) {
      go_on = refuse("a marker out of place");  // DNL, DHP, EXP, JPGn
    }
    if (!go_on) return;
  }
}

}  // namespace

JpegHeader parse_jpeg_header(Bytes data) {
  JpegHeader header;
  Parser(data, header).run();
  return header;
}

}  // namespace headrace
