// The segments of a JPEG that are not part of its coding: application segments and comments.
#include "core/jpeg/transcode/segments.h"

#include <algorithm>
#include <string_view>

#include "core/base/error.h"

namespace headrace {
namespace {

constexpr int kSos = 0xDA, kApp0 = 0xE0, kApp1 = 0xE1, kApp2 = 0xE2, kApp14 = 0xEE, kApp15 = 0xEF, kCom = 0xFE;

struct Kind {
  int marker;
  std::string_view begin;  // of the body
};

constexpr Kind kProfile{kApp2, std::string_view("ICC_PROFILE\0", 12)};
constexpr Kind kShown[] = {{kApp0, "JFIF"},
                           {kApp1, std::string_view("Exif\0\0", 6)},
                           {kApp1, std::string_view("http://ns.adobe.com/xap/1.0/\0", 29)},
                           kProfile,
                           {kApp14, "Adobe"}};
constexpr Kind kPictures{kApp2, std::string_view("MPF\0", 4)};

bool is_frame(int marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

bool is(const Kind& kind, int marker, std::span<const uint8_t> body) {
  const std::string_view text(reinterpret_cast<const char*>(body.data()), body.size());
  return marker == kind.marker && text.starts_with(kind.begin);
}

}  // namespace

std::vector<uint8_t> kept_segments(std::span<const uint8_t> data, bool all) {
  std::vector<uint8_t> kept;
  bool framed = false;
  for (size_t at = 2; at + 4 <= data.size();) {
    if (data[at + 1] == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const int marker = data[at + 1];
    if (marker == kSos) break;
    const size_t length = size_t{2} + static_cast<size_t>(data[at + 2] << 8 | data[at + 3]);
    const auto segment = data.subspan(at, std::min(length, data.size() - at));
    at += length;
    framed = framed || is_frame(marker);
    if (marker != kCom && (marker < kApp0 || marker > kApp15)) continue;
    const auto body = segment.subspan(std::min<size_t>(4, segment.size()));
    if (is(kPictures, marker, body))
      throw NeedsPillow(Stage::kHeader, "an index of further pictures (MPF), which a rewrite would make wrong");
    if (framed && is(kProfile, marker, body))  // Pillow ignores it there, and would not in the rewritten file
      throw NeedsPillow(Stage::kHeader, "an ICC profile behind the frame header");
    const auto shown = [&](const Kind& kind) { return is(kind, marker, body); };
    if (all || std::any_of(std::begin(kShown), std::end(kShown), shown))
      kept.insert(kept.end(), segment.begin(), segment.end());
  }
  return kept;
}

}  // namespace headrace
