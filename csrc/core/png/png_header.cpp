// The chunks of a PNG: whether Pillow would open and decode it without an error or a warning, and where its data are.
#include "core/png/png_header.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "core/png/quiet_chunks.h"

namespace headrace {
namespace {

constexpr std::array<uint8_t, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr size_t kChunkFrame = 12;           // length, type and checksum
constexpr size_t kMostText = 1 << 20;        // bytes of all text chunks; Pillow has limits, which are larger
constexpr size_t kMostProfile = 1 << 20;     // bytes of a colour profile: PngImagePlugin.MAX_TEXT_CHUNK
constexpr size_t kMostCompressed = 1 << 10;  // deflate makes at most 1,032 times as much: less than Pillow's limit
constexpr int64_t kMostPixels = 1 << 26;     // of larger images Pillow raises errors about memory where they are loaded
constexpr uint32_t kMostEdge = 1 << 26;

uint32_t big_endian(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | uint32_t{at[3]};
}

struct Chunk {
  std::array<char, 4> type{};
  std::span<const uint8_t> data;

  bool is(const char* name) const { return std::memcmp(type.data(), name, type.size()) == 0; }
};

bool is_depth_of(PngColour colour, int depth) {
  switch (colour) {
    case PngColour::kGray:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case PngColour::kPalette:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    default:
      return depth == 8 || depth == 16;
  }
}

/// Reads the chunks in order. Each method returns why the file is not plain, or null.
class Chunks {
 public:
  Chunks(std::span<const uint8_t> bytes, PngHeader& header) : begin_(bytes.data()), left_(bytes), header_(header) {}

  const char* read() {
    if (!is_png(left_)) return "not a PNG";
    left_ = left_.subspan(kSignature.size());
    for (Chunk chunk;;) {
      if (const char* reason = next(chunk)) return reason;
      if (chunk.is("IEND")) return header_.data.empty() ? "PNG without image data" : nullptr;
      if (const char* reason = take(chunk)) return reason;
    }
  }

 private:
  const char* next(Chunk& chunk) {
    if (left_.size() < kChunkFrame) return "truncated PNG";
    const size_t length = big_endian(left_.data());
    if (length > left_.size() - kChunkFrame) return "truncated PNG";
    std::memcpy(chunk.type.data(), left_.data() + 4, chunk.type.size());
    chunk.data = left_.subspan(8, length);
    const uint32_t sum = libdeflate_crc32(0, left_.data() + 4, length + 4);
    if (sum != big_endian(left_.data() + 8 + length)) return "PNG with a wrong checksum";
    left_ = left_.subspan(kChunkFrame + length);
    return nullptr;
  }

  const char* take(const Chunk& chunk) {
    if (header_.depth == 0) return chunk.is("IHDR") ? take_ihdr(chunk.data) : "PNG that does not begin with its header";
    if (chunk.is("IDAT")) {
      if (ended_) return "PNG whose data are in two places";
      if (header_.colour == PngColour::kPalette && header_.palette.empty()) return "PNG without its palette";
      header_.data.push_back(chunk.data);
      header_.data_end = static_cast<size_t>(chunk.data.data() + chunk.data.size() - begin_);
      return nullptr;
    }
    const bool before = header_.data.empty();
    header_.quiet = header_.quiet && quiet_.take({chunk.type.data(), chunk.type.size()}, chunk.data, header_, before);
    if (before && chunk.is("PLTE")) return take_plte(chunk.data);
    if (before && chunk.is("tRNS")) return take_trns(chunk.data);
    ended_ = !before;
    return check_ancillary(chunk);
  }

  const char* take_ihdr(std::span<const uint8_t> data) {
    if (data.size() != 13) return "PNG with a header of another length";
    const uint32_t width = big_endian(data.data()), height = big_endian(data.data() + 4);
    if (width < 1 || height < 1) return "PNG without pixels";
    if (width > kMostEdge || height > kMostEdge || int64_t{width} * height > kMostPixels) return "huge PNG";
    const uint8_t colour = data[9];
    if (colour > 6 || colour == 1 || colour == 5) return "PNG of an unknown colour type";
    header_.colour = static_cast<PngColour>(colour);
    if (!is_depth_of(header_.colour, data[8])) return "PNG of an unknown bit depth";
    if (data[10] != 0 || data[11] != 0) return "PNG with an unknown compression or filter method";
    if (data[12] != 0) return "interlaced PNG";
    header_.size = {static_cast<int>(width), static_cast<int>(height)};
    header_.depth = data[8];
    return nullptr;
  }

  const char* take_plte(std::span<const uint8_t> data) {
    if (!header_.palette.empty()) return "PNG with two palettes";
    if (data.empty() || data.size() % 3 != 0 || data.size() > 768) return "PNG with a palette of another length";
    header_.palette = data;
    return nullptr;
  }

  const char* take_trns(std::span<const uint8_t> data) {
    if (header_.transparency) return "PNG with two tRNS chunks";
    const bool palette = header_.colour == PngColour::kPalette;
    if (!palette && data.size() < (header_.colour == PngColour::kRgb ? 6u : 2u)) return "PNG with a short tRNS chunk";
    header_.transparency = true;
    return nullptr;
  }

  const char* check_ancillary(const Chunk& chunk) {
    struct Known {
      const char* name;
      size_t least;  // bytes, without which Pillow raises an error
    };
    static constexpr std::array<Known, 4> kRead = {{{"gAMA", 4}, {"cHRM", 32}, {"sRGB", 1}, {"pHYs", 9}}};
    static constexpr std::array<const char*, 14> kIgnored = {"bKGD", "sBIT", "tIME", "hIST", "sPLT", "oFFs", "pCAL",
                                                             "sCAL", "sTER", "gIFg", "gIFx", "vpAg", "iDOT", "orNT"};
    for (const auto& [name, least] : kRead) {
      if (chunk.is(name)) return chunk.data.size() < least ? "PNG with a short chunk" : nullptr;
    }
    for (const char* name : kIgnored) {
      if (chunk.is(name)) return nullptr;
    }
    if (chunk.is("eXIf") || chunk.is("tEXt")) return take_text(chunk.data.size());
    const bool profile = chunk.is("iCCP");
    if (!profile && !chunk.is("zTXt") && !chunk.is("iTXt")) return "PNG with chunks of other kinds";
    // Pillow inflates these. What is short cannot reach its limits. It ignores a text that it cannot read.
    const auto end = std::find(chunk.data.begin(), chunk.data.end(), uint8_t{0});
    if (chunk.data.end() - end < 2) return "PNG with a text that has no name";
    const bool compressed = !chunk.is("iTXt") || end[1] != 0;
    if (!chunk.is("iTXt") && end[1] != 0) return "PNG with an unknown compression method";
    if (profile) return check_profile({end + 2, chunk.data.end()});
    if (compressed && chunk.data.size() > kMostCompressed) return "PNG with a long compressed text";
    return take_text(chunk.data.size());
  }

  const char* take_text(size_t bytes) {
    header_.described = true;
    text_ += bytes;
    return text_ > kMostText ? "PNG with long texts" : nullptr;
  }

  static const char* check_profile(std::span<const uint8_t> data) {
    return data.size() <= kMostCompressed || inflates_within(data, kMostProfile) ? nullptr
                                                                                 : "PNG with a large colour profile";
  }

  /// Whether zlib data are sound and become fewer than `most` bytes.
  static bool inflates_within(std::span<const uint8_t> data, size_t most) {
    libdeflate_decompressor* inflater = libdeflate_alloc_decompressor();
    if (inflater == nullptr) return false;
    std::vector<uint8_t> scratch(most);
    size_t made = 0;
    const libdeflate_result result =
        libdeflate_zlib_decompress(inflater, data.data(), data.size(), scratch.data(), scratch.size(), &made);
    libdeflate_free_decompressor(inflater);
    return result == LIBDEFLATE_SUCCESS && made < most;
  }

  const uint8_t* const begin_;
  std::span<const uint8_t> left_;
  PngHeader& header_;
  QuietChunks quiet_;
  size_t text_ = 0;
  bool ended_ = false;  // there was a chunk after the data
};

}  // namespace

int PngHeader::channels() const {
  switch (colour) {
    case PngColour::kRgb:
      return 3;
    case PngColour::kGrayAlpha:
      return 2;
    case PngColour::kRgba:
      return 4;
    default:
      return 1;
  }
}

bool is_png(std::span<const uint8_t> bytes) {
  return bytes.size() >= kSignature.size() && std::equal(kSignature.begin(), kSignature.end(), bytes.begin());
}

PngHeader parse_png_header(std::span<const uint8_t> bytes) {
  PngHeader header;
  header.not_plain = Chunks(bytes, header).read();
  return header;
}

}  // namespace headrace
